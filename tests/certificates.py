"""Certificates made when they are needed: an authority, a server on loopback, a client, and a stranger's authority."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy import certificates


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files."""

    folder: Path

    def path(self, name: str) -> str:
        """`ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`; of another authority `stranger.pem`, and
        `their.pem` and `their.key` of its client."""
        return str(self.folder / name)

    @property
    def server(self) -> dict[str, str]:
        """The environment of services that demand client certificates, and call each other with one."""
        return {
            "TOUCHSTONE_TLS_CERT": self.path("server.pem"),
            "TOUCHSTONE_TLS_KEY": self.path("server.key"),
            "TOUCHSTONE_TLS_CLIENT_CA": self.path("ca.pem"),
            **self.client,
        }

    @property
    def client(self) -> dict[str, str]:
        return {
            "TOUCHSTONE_TLS_CA": self.path("ca.pem"),
            "TOUCHSTONE_TLS_CLIENT_CERT": self.path("client.pem"),
            "TOUCHSTONE_TLS_CLIENT_KEY": self.path("client.key"),
        }


def make(folder: Path) -> Certificates:
    """Valid for a day."""
    certificates.make(folder, ("server", "client"), days=1)
    theirs = folder / "of-a-stranger"
    certificates.make(theirs, ("client",), days=1)
    for name, copy in (("ca.pem", "stranger.pem"), ("client.pem", "their.pem"), ("client.key", "their.key")):
        shutil.copy(theirs / name, folder / copy)
    return Certificates(folder)


def renew(made: Certificates) -> None:
    """From the same authority."""
    certificates.renew(made.folder, ("server", "client"), days=1)
