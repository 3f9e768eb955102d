"""Settings of the launcher, read once from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local.ports import free_port, take
from services import environment
from services.errors import InvalidRequestError
from services.rpc import WRONG_SETTINGS

ROOT = Path(__file__).resolve().parents[2]
"""The tree that holds `services` and `protos`."""
_METRICS_PORT, _LAST_METRICS_PORT = "TOUCHSTONE_METRICS_PORT", 65_000
SCHEDULER_PORT, RESULTS_PORT, REPLICA_PORT = 8051, 8052, 8054
"""The addresses of the services that clients use by default."""


SILENT_S = 20
"""Seconds without an answer after which an idle process counts as frozen. On a busy machine an answer may take
several."""


class LaunchError(Exception):
    """Touchstone cannot start or continue; the message says why and what to do. `code` is the launcher's exit code:
    that of the service which cannot start, else 1."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Settings:
    """The state directory and each process's port. Ports are on loopback: as set, else the usual one if it is free,
    else any free one."""

    state_dir: Path
    data_dir: Path | None
    endpoints: Path | None
    evaluators: int
    evaluator_grace_s: float
    """How long an evaluator may finish its units after SIGTERM."""
    http_host: str
    http_port: int
    nats_port: int
    nats_monitor_port: int
    scheduler_port: int
    results_port: int
    replica_port: int
    """At which the copy of the results is read; 0 if none is made."""
    evaluator_ports: tuple[int, ...]
    silent_s: float
    """How long an idle process may leave health checks unanswered before it is restarted."""
    metrics_ports: Mapping[str, int]
    """At which each service shows its metrics, by process; empty if they keep none."""
    fixed_ports: Mapping[str, int]
    """Ports that the environment sets, by variable: what must be free before anything starts."""

    @property
    def page_url(self) -> str:
        host = "127.0.0.1" if self.http_host in ("0.0.0.0", "::", "localhost") else self.http_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.http_port}"

    @property
    def nats_monitor_url(self) -> str:
        return f"http://127.0.0.1:{self.nats_monitor_port}"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Raises LaunchError for an invalid value."""
        try:
            return cls._read(environ)
        except InvalidRequestError as error:
            raise LaunchError(error.message, WRONG_SETTINGS) from error

    @classmethod
    def _read(cls, environ: Mapping[str, str]) -> Settings:
        evaluators = environment.whole("TOUCHSTONE_EVALUATORS", 1, 1, 64, environ)
        http_port = _port("TOUCHSTONE_HTTP_PORT", 8080, environ)
        fixed = {"TOUCHSTONE_HTTP_PORT": http_port}
        copies = environment.number("TOUCHSTONE_REPLICA_S", 0, 0, environment.LONG_S, environ) > 0
        metrics_ports = _metrics_ports(evaluators, copies, environ)
        taken = {http_port, *metrics_ports.values()}

        def port(name: str, usual: int = 0, *, needed: bool = True) -> int:
            given = name and environment.text(name, environ=environ)
            if not needed:
                return 0
            if given:
                chosen = fixed[name] = _port(name, 1, environ)
            elif usual and usual not in taken and take(usual):
                chosen = usual
            else:
                chosen = free_port()
                while chosen in taken:
                    chosen = free_port()
            taken.add(chosen)
            return chosen

        nats_port, monitor_port = port("TOUCHSTONE_NATS_PORT"), port("TOUCHSTONE_NATS_MONITOR_PORT")
        scheduler_port = port("TOUCHSTONE_SCHEDULER_PORT", SCHEDULER_PORT)
        results_port = port("TOUCHSTONE_RESULTS_PORT", RESULTS_PORT)
        replica_port = port("TOUCHSTONE_REPLICA_PORT", REPLICA_PORT, needed=copies)
        first = port("TOUCHSTONE_EVALUATOR_PORT")
        evaluator_ports = (first, *(port("") for _ in range(evaluators - 1)))
        if len({*fixed.values()}) < len(fixed):
            raise LaunchError(f"Two of {', '.join(fixed)} have the same port. Give each its own.", WRONG_SETTINGS)
        if shared := sorted(name for name, port in fixed.items() if port in metrics_ports.values()):
            raise LaunchError(
                f"{_METRICS_PORT} and the ports after it, one for each service, include that of {shared[0]}. Choose "
                "another one.",
                WRONG_SETTINGS,
            )
        return cls(
            state_dir=environment.state_folder(environ),
            data_dir=environment.folder("TOUCHSTONE_DATA_DIR", "the folder of a data mirror", environ),
            endpoints=environment.file("TOUCHSTONE_ENDPOINTS", "a TOML file of endpoints", environ),
            evaluators=evaluators,
            evaluator_grace_s=environment.number("TOUCHSTONE_GRACE_S", 6, 0, 3600, environ),
            http_host=environment.own_host("TOUCHSTONE_HTTP_HOST", "127.0.0.1", environ),
            http_port=http_port,
            nats_port=nats_port,
            nats_monitor_port=monitor_port,
            scheduler_port=scheduler_port,
            results_port=results_port,
            replica_port=replica_port,
            evaluator_ports=evaluator_ports,
            silent_s=environment.number("TOUCHSTONE_SILENT_S", SILENT_S, 5, 86_400, environ),
            metrics_ports=metrics_ports,
            fixed_ports=fixed,
        )


def _metrics_ports(evaluators: int, copies: bool, environ: Mapping[str, str]) -> dict[str, int]:
    """Successive ports, so that a scrape configuration can list them."""
    first = environment.whole(_METRICS_PORT, 0, 0, _LAST_METRICS_PORT, environ)
    names = ["gateway", "scheduler", "results", *(f"evaluator-{number}" for number in range(1, evaluators + 1))]
    names += ["replica"] if copies else []
    return {name: first + place for place, name in enumerate(names)} if first else {}


def _port(name: str, default: int, environ: Mapping[str, str]) -> int:
    return environment.whole(name, default, 1, environment.MOST_PORT, environ)
