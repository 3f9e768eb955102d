"""Settings of an OpenID Connect provider: none, all, or a sentence that says what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.gateway.access.oidc_settings import Settings
from services.gateway.settings import Settings as Gateway

WHOLE = {
    "ISSUER": "https://login.example/realms/staff",
    "CLIENT_ID": "touchstone",
    "PAGES_URL": "https://touchstone.example/",
    "USER_GROUPS": "bench, data science,",
}


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOUCHSTONE_")]:
        monkeypatch.delenv(name)


def read(monkeypatch: pytest.MonkeyPatch, **changes: str) -> Settings | None:
    for name, value in {**WHOLE, **changes}.items():
        monkeypatch.setenv(f"TOUCHSTONE_OIDC_{name}", value)
    return Settings.from_env()


def test_without_variables_there_is_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_env() is None
    assert Gateway.from_env() == Gateway()
    assert read(monkeypatch, **dict.fromkeys(WHOLE, " ")) is None


def test_all_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch)
    assert settings is not None
    assert settings == Settings(
        "https://login.example/realms/staff",
        "touchstone",
        "https://touchstone.example",
        user_groups=frozenset({"bench", "data science"}),
    )
    assert settings.host == "login.example"
    assert settings.redirect_uri == "https://touchstone.example/login/callback"
    assert Gateway.from_env().oidc == settings


@pytest.mark.parametrize("missing", ["ISSUER", "CLIENT_ID", "PAGES_URL", "USER_GROUPS"])
def test_a_half_set_provider_stops_the_start(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        read(monkeypatch, **{missing: ""})
    first = "TOUCHSTONE_OIDC_ISSUER" if missing == "CLIENT_ID" else "TOUCHSTONE_OIDC_CLIENT_ID"
    assert refused.value.message.startswith(f"{first} is set, but login with OpenID Connect also needs ")
    assert f"TOUCHSTONE_OIDC_{missing}" in refused.value.message


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ISSUER": "http://login.example"}, "ISSUER must be one https URL"),
        ({"ISSUER": "https://a.example,https://b.example"}, "ISSUER must be one https URL"),
        ({"ISSUER": "https://user:secret@a.example"}, "ISSUER must be one https URL"),
        ({"ISSUER": "https://a.example/?x=1"}, "ISSUER must be one https URL"),
        ({"PAGES_URL": "http://touchstone.example"}, "PAGES_URL must be one https URL"),
        ({"PAGES_URL": "https://touchstone.example/bench"}, "PAGES_URL must be an address without a path"),
        ({"SCOPES": "profile"}, "SCOPES must contain openid."),
        ({"ADMIN_GROUPS": "ops,*"}, "ADMIN_GROUPS must name groups."),
        ({"SESSION_S": "604801"}, "SESSION_S must be a whole number of seconds between 0 and 604,800"),
        ({"LOGOUT": "both"}, "LOGOUT must be provider or local"),
        ({"CA": "/etc/hostname"}, "CA must name a file of certificates in PEM form."),
        ({"CLIENT_SECRET_FILE": "/no/such/file"}, "CLIENT_SECRET_FILE must name a file with the client's secret"),
    ],
)
def test_wrong_values_are_refused(monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        read(monkeypatch, **changes)
    assert refused.value.message.startswith(f"TOUCHSTONE_OIDC_{sentence}")
    assert "secret@" not in refused.value.message


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:9000", "http://localhost:9000/x", "http://[::1]:9000"])
def test_a_provider_on_this_machine_may_do_without_tls(monkeypatch: pytest.MonkeyPatch, issuer: str) -> None:
    settings = read(monkeypatch, ISSUER=issuer, PAGES_URL="http://localhost:8080")
    assert settings is not None
    assert settings.issuer == issuer


def test_the_secret_comes_from_a_variable_or_a_file_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = read(monkeypatch, CLIENT_SECRET="very-secret")
    assert settings is not None
    assert (settings.client_secret, "very-secret" in repr(Gateway.from_env())) == ("very-secret", False)
    file = tmp_path / "secret"
    file.write_text("from-a-file\n")
    with pytest.raises(InvalidRequestError, match="exclude each other"):
        read(monkeypatch, CLIENT_SECRET_FILE=str(file))
    settings = read(monkeypatch, CLIENT_SECRET="", CLIENT_SECRET_FILE=str(file))
    assert settings is not None
    assert settings.client_secret == "from-a-file"
    file.write_text("\n")
    with pytest.raises(InvalidRequestError, match="CLIENT_SECRET_FILE must name a file with the"):
        read(monkeypatch, CLIENT_SECRET_FILE=str(file))


def test_the_package_that_checks_signatures_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidRequestError, match=r"needs the package joserfc\. Install it where the gateway runs"):
        read(monkeypatch)


def test_local_mode_has_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    read(monkeypatch)
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_OIDC_ISSUER needs TOUCHSTONE_AUTH=token"):
        Gateway.from_env().require_loopback()
