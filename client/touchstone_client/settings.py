"""Where the services are, read from the environment once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Settings:
    """Addresses as host:port. `token` names the user; empty where the installation asks for none."""

    scheduler: str = "127.0.0.1:50051"
    results: str = "127.0.0.1:50052"
    token: str = field(default="", repr=False)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        default = cls()
        return cls(
            scheduler=environ.get("TOUCHSTONE_SCHEDULER") or default.scheduler,
            results=environ.get("TOUCHSTONE_RESULTS") or default.results,
            token=environ.get("TOUCHSTONE_TOKEN", ""),
        )
