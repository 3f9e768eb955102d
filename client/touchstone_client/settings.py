"""Where the services are, read from the environment once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

SYSTEM_CA = "system"
"""The value of `tls_ca` for the roots that gRPC ships, for certificates of a public authority."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Addresses as host:port. `token` names the user; empty if the installation needs none.

    With `tls_ca` (a PEM file's path, or "system") calls go over TLS; `tls_client_cert` and `tls_client_key` are for
    servers that require a client certificate.
    """

    scheduler: str = "127.0.0.1:8051"
    results: str = "127.0.0.1:8052"
    token: str = field(default="", repr=False)
    tls_ca: str = ""
    tls_client_cert: str = ""
    tls_client_key: str = ""
    replica: str = ""
    """Of the results' copy, which answers reads while the results service is away; empty without one."""
    timeout_s: float = 15.0
    """Deadline of a plain call. It outlasts the lease of a scheduler that was killed. Comparisons and exports have
    longer ones."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        default = cls()
        return cls(
            scheduler=environ.get("TOUCHSTONE_SCHEDULER") or default.scheduler,
            results=environ.get("TOUCHSTONE_RESULTS") or default.results,
            token=environ.get("TOUCHSTONE_TOKEN", ""),
            tls_ca=environ.get("TOUCHSTONE_TLS_CA", ""),
            tls_client_cert=environ.get("TOUCHSTONE_TLS_CLIENT_CERT", ""),
            tls_client_key=environ.get("TOUCHSTONE_TLS_CLIENT_KEY", ""),
            replica=environ.get("TOUCHSTONE_REPLICA", ""),
        )
