"""What the gateway must know of an OpenID Connect provider with which browsers log in."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from services import environment
from services.errors import InvalidRequestError

CALLBACK = "/login/callback"
"""Where the provider sends browsers back to. It must be registered there."""
EVERYBODY = "*"
MOST_SESSION_S = 7 * 24 * 3600
"""The store of sessions forgets them after this time."""
_PREFIX = "TOUCHSTONE_OIDC_ISSUER".removesuffix("ISSUER")


@dataclass(frozen=True)
class Settings:
    """The provider, Touchstone's registration there, and who may do what.

    `pages` is the address of the pages as browsers see it, without a slash at the end. Without `client_secret`,
    Touchstone is a public client. `user_claim` names people, `groups_claim` lists their groups; a dot leads into a
    nested claim. Members of `admin_groups` are admins, those of `user_groups` users; EVERYBODY as a user group means
    all whom the provider lets in. A session lasts `session_s` seconds, or as long as its ID token where that is 0.
    `provider_logout` also ends the session at the provider.
    """

    issuer: str
    client_id: str
    pages: str
    client_secret: str = field(default="", repr=False)
    ca: Path | None = None
    scopes: str = "openid profile email"
    user_claim: str = "sub"
    groups_claim: str = "groups"
    user_groups: frozenset[str] = frozenset()
    admin_groups: frozenset[str] = frozenset()
    session_s: int = 28_800
    provider_logout: bool = True

    @property
    def host(self) -> str:
        """The provider's name on pages."""
        return urlsplit(self.issuer).netloc

    @property
    def redirect_uri(self) -> str:
        return self.pages + CALLBACK

    @classmethod
    def from_env(cls) -> Settings | None:
        """None where no variable is set. Raises InvalidRequestError for an invalid value, and if one is missing."""
        text = environment.text
        issuer = _address("TOUCHSTONE_OIDC_ISSUER")
        pages = _address("TOUCHSTONE_OIDC_PAGES_URL").rstrip("/")
        settings = cls(
            issuer=issuer,
            client_id=text("TOUCHSTONE_OIDC_CLIENT_ID"),
            pages=pages,
            client_secret=_secret(),
            ca=environment.file("TOUCHSTONE_OIDC_CA", "a file of certificates in PEM form"),
            scopes=text("TOUCHSTONE_OIDC_SCOPES", cls.scopes),
            user_claim=text("TOUCHSTONE_OIDC_USER_CLAIM", cls.user_claim),
            groups_claim=text("TOUCHSTONE_OIDC_GROUPS_CLAIM", cls.groups_claim),
            user_groups=_names("TOUCHSTONE_OIDC_USER_GROUPS"),
            admin_groups=_names("TOUCHSTONE_OIDC_ADMIN_GROUPS"),
            session_s=environment.whole("TOUCHSTONE_OIDC_SESSION_S", cls.session_s, 0, MOST_SESSION_S),
            provider_logout=environment.choice("TOUCHSTONE_OIDC_LOGOUT", "provider", ("provider", "local"))
            == "provider",
        )
        given = sorted(name for name, value in os.environ.items() if name.startswith(_PREFIX) and value.strip())
        if not given:
            return None
        _check(settings, given[0])
        return settings


def _check(settings: Settings, given: str) -> None:
    """Raises InvalidRequestError for settings that do not belong together. `given` is a variable that is set."""
    needed = {
        "TOUCHSTONE_OIDC_ISSUER": settings.issuer,
        "TOUCHSTONE_OIDC_CLIENT_ID": settings.client_id,
        "TOUCHSTONE_OIDC_PAGES_URL": settings.pages,
        "TOUCHSTONE_OIDC_USER_GROUPS or TOUCHSTONE_OIDC_ADMIN_GROUPS": settings.user_groups | settings.admin_groups,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise InvalidRequestError(f"{given} is set, but login with OpenID Connect also needs {', '.join(missing)}.")
    if urlsplit(settings.pages).path:
        raise InvalidRequestError(
            "TOUCHSTONE_OIDC_PAGES_URL must be an address without a path, such as https://touchstone.example."
        )
    if "openid" not in settings.scopes.split():
        raise InvalidRequestError("TOUCHSTONE_OIDC_SCOPES must contain openid.")
    if EVERYBODY in settings.admin_groups:
        raise InvalidRequestError("TOUCHSTONE_OIDC_ADMIN_GROUPS must name groups. Not everybody can be an admin.")
    try:
        ssl.create_default_context(cafile=settings.ca)
    except (OSError, ValueError) as error:
        raise InvalidRequestError("TOUCHSTONE_OIDC_CA must name a file of certificates in PEM form.") from error
    if importlib.util.find_spec("joserfc") is None:
        raise InvalidRequestError(
            "TOUCHSTONE_OIDC_ISSUER needs the package joserfc. Install it where the gateway runs: pip install joserfc"
        )


def _address(name: str) -> str:
    """An https URL; plain http only on this machine, for trials."""
    given = environment.url(name, "", ("https", "http"))
    parts = urlsplit(given)
    plain = "," not in given and not parts.query and not parts.fragment and "@" not in parts.netloc
    if not plain or (parts.scheme == "http" and not _is_own(parts.hostname or "")):
        raise InvalidRequestError(
            f"{name} must be one https URL, such as https://login.example; plain http is for this machine only."
        )
    return given


def _is_own(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _secret() -> str:
    """The client's secret, from a variable or a file; empty without either."""
    secret = environment.text("TOUCHSTONE_OIDC_CLIENT_SECRET")
    file = environment.file("TOUCHSTONE_OIDC_CLIENT_SECRET_FILE", "a file with the client's secret")
    if file is None:
        return secret
    if secret:
        raise InvalidRequestError(
            "TOUCHSTONE_OIDC_CLIENT_SECRET and TOUCHSTONE_OIDC_CLIENT_SECRET_FILE exclude each other. Set one of them."
        )
    try:
        secret = file.read_text().strip()
    except (OSError, UnicodeError):
        secret = ""
    if not secret:
        raise InvalidRequestError("TOUCHSTONE_OIDC_CLIENT_SECRET_FILE must name a file with the client's secret.")
    return secret


def _names(name: str) -> frozenset[str]:
    """Names separated by commas."""
    return frozenset(filter(None, map(str.strip, environment.text(name).split(","))))
