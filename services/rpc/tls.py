"""Optional TLS of gRPC: the servers' certificates, the authorities that channels trust, and client certificates on
either side."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from services import environment, pem
from services.errors import InvalidRequestError

log = logging.getLogger(__name__)

SYSTEM = "system"
"""As TOUCHSTONE_TLS_CA: the roots that gRPC ships, for certificates of a public authority."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files; empty where TLS is off.

    Servers show `cert` and, with `client_ca`, accept only clients with a certificate from there. Channels trust `ca`
    and show `client_cert` if they have one. Channels read files when they are created. Servers read them again when
    they have changed.
    """

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    ca: str = ""
    client_cert: str = ""
    client_key: str = ""

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Tls:
        """Raises InvalidRequestError when one is set without another that it needs."""
        made = cls(
            cert=environment.text("TOUCHSTONE_TLS_CERT", environ=environ),
            key=environment.text("TOUCHSTONE_TLS_KEY", environ=environ),
            client_ca=environment.text("TOUCHSTONE_TLS_CLIENT_CA", environ=environ),
            ca=environment.text("TOUCHSTONE_TLS_CA", environ=environ),
            client_cert=environment.text("TOUCHSTONE_TLS_CLIENT_CERT", environ=environ),
            client_key=environment.text("TOUCHSTONE_TLS_CLIENT_KEY", environ=environ),
        )
        needs = (
            (made.cert, made.key, "TOUCHSTONE_TLS_CERT", "TOUCHSTONE_TLS_KEY"),
            (made.key, made.cert, "TOUCHSTONE_TLS_KEY", "TOUCHSTONE_TLS_CERT"),
            # Services call each other: each must trust what the others show, and show what they require.
            (made.cert, made.ca, "TOUCHSTONE_TLS_CERT", "TOUCHSTONE_TLS_CA"),
            (made.client_ca, made.cert, "TOUCHSTONE_TLS_CLIENT_CA", "TOUCHSTONE_TLS_CERT"),
            (made.client_ca, made.client_cert, "TOUCHSTONE_TLS_CLIENT_CA", "TOUCHSTONE_TLS_CLIENT_CERT"),
            (made.client_cert, made.client_key, "TOUCHSTONE_TLS_CLIENT_CERT", "TOUCHSTONE_TLS_CLIENT_KEY"),
            (made.client_key, made.client_cert, "TOUCHSTONE_TLS_CLIENT_KEY", "TOUCHSTONE_TLS_CLIENT_CERT"),
            (made.client_cert, made.ca, "TOUCHSTONE_TLS_CLIENT_CERT", "TOUCHSTONE_TLS_CA"),
        )
        pem.require_together(needs)
        return made

    def server_credentials(self) -> grpc.ServerCredentials | None:
        """None without a certificate. Raises InvalidRequestError for invalid files."""
        if not self.cert:
            return None
        renewed = _Renewed(self)
        latest: Any = renewed.latest  # gRPC's types do not know that it may be None.
        return grpc.dynamic_ssl_server_credentials(renewed.first, latest, bool(self.client_ca))

    def shown(self) -> grpc.ServerCertificateConfiguration:
        """What a server shows and demands now. Raises InvalidRequestError for invalid files."""
        pair = pem.pair(self.cert, self.key, "TOUCHSTONE_TLS_CERT", "TOUCHSTONE_TLS_KEY")
        clients = pem.authority(self.client_ca, "TOUCHSTONE_TLS_CLIENT_CA") if self.client_ca else None
        return grpc.ssl_server_certificate_configuration([pair], clients)

    def channel_credentials(self) -> grpc.ChannelCredentials | None:
        """None without a CA. Raises InvalidRequestError for invalid files."""
        if not self.ca:
            return None
        roots = None if self.ca == SYSTEM else pem.authority(self.ca, "TOUCHSTONE_TLS_CA")
        if not self.client_cert:
            return grpc.ssl_channel_credentials(roots)
        pair = pem.pair(self.client_cert, self.client_key, "TOUCHSTONE_TLS_CLIENT_CERT", "TOUCHSTONE_TLS_CLIENT_KEY")
        return grpc.ssl_channel_credentials(roots, *pair)


PLAIN = Tls()
"""No TLS."""


class _Renewed:
    """What a server shows, read again once its files have changed; asked for at each new connection."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._state = self._now()
        self.first = tls.shown()

    def latest(self) -> grpc.ServerCertificateConfiguration | None:
        """None if it is as before, also if the new files cannot be used: a key may be replaced before its
        certificate."""
        state = self._now()
        if state == self._state:
            return None
        try:
            found = self._tls.shown()
        except InvalidRequestError as error:
            log.warning("renewed certificates cannot be used yet: %s", error.message)
            return None
        self._state = state
        log.info("using renewed certificates")
        return found

    def _now(self) -> list[tuple[int, int]]:
        files = (self._tls.cert, self._tls.key, self._tls.client_ca)
        found = []
        for file in files:
            with suppress(OSError):
                stat = os.stat(file)
                found.append((stat.st_ino, stat.st_mtime_ns))
        return found
