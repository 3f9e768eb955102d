"""Optional TLS of gRPC: the servers' certificates, the authorities that channels trust, and client certificates on
either side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import grpc

from services import environment, pem

SYSTEM = "system"
"""As TOUCHSTONE_TLS_CA: the roots that gRPC ships, for certificates of a public authority."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files; empty where TLS is off.

    Servers show `cert` and, with `client_ca`, accept only clients with a certificate from there. Channels trust `ca`
    and show `client_cert` if they have one. Files are read when a server or channel is created.
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
        pair = pem.pair(self.cert, self.key, "TOUCHSTONE_TLS_CERT", "TOUCHSTONE_TLS_KEY")
        clients = pem.authority(self.client_ca, "TOUCHSTONE_TLS_CLIENT_CA") if self.client_ca else None
        return grpc.ssl_server_credentials([pair], clients, require_client_auth=clients is not None)

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
