"""Certificates made when they are needed: an authority, a server on loopback, a client, and a stranger's authority."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files."""

    folder: Path

    def path(self, name: str) -> str:
        """`ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`, `stranger.pem`."""
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
    """Valid for a day, on elliptic curves, which are quick to make."""
    folder.mkdir(parents=True, exist_ok=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "stranger"):
        _openssl(
            folder,
            "req",
            "-x509",
            *curve,
            "-days",
            "1",
            "-subj",
            f"/CN={name}",
            "-out",
            f"{name}.pem",
            "-keyout",
            f"{name}.key",
        )
    for name in ("server", "client"):
        _openssl(folder, "req", *curve, "-subj", f"/CN={name}", "-out", f"{name}.csr", "-keyout", f"{name}.key")
        (folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", f"{name}.ext")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signed)
    return Certificates(folder)


def _openssl(folder: Path, *arguments: str) -> None:
    made = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    assert made.returncode == 0, made.stderr
