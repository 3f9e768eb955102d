"""The results service's settings, read from the environment once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from services import bus, rpc


@dataclass(frozen=True, slots=True)
class Settings:
    """`listen` is the host:port that gRPC binds; `database` the DuckDB file, made with its folder when absent."""

    listen: str
    database: Path
    bus: bus.Settings
    rpc: rpc.Settings

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError when the variables contradict each other."""
        state = Path(os.environ.get("TOUCHSTONE_STATE_DIR", "var"))
        return cls(
            listen=os.environ.get("TOUCHSTONE_RESULTS_LISTEN", "127.0.0.1:50052"),
            database=state / "results" / "touchstone.duckdb",
            bus=bus.Settings.from_env(),
            rpc=rpc.Settings.from_env(),
        )
