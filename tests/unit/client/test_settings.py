"""Settings of the client."""

from __future__ import annotations

from touchstone_client.settings import Settings


def test_settings_hide_the_token() -> None:
    settings = Settings.from_env({"TOUCHSTONE_TOKEN": "secret", "TOUCHSTONE_SCHEDULER": "a:1"})
    assert (settings.scheduler, settings.results, settings.token) == ("a:1", "127.0.0.1:8052", "secret")
    assert "secret" not in repr(settings)
