"""What runs on one machine: NATS, scheduler, results, evaluators, gateway, and how each is started."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from deploy.local import health
from deploy.local.settings import LaunchError, Settings
from deploy.local.state import StateDir
from deploy.local.supervisor import Process
from services import rpc
from services.errors import InvalidRequestError

LEAST_NATS = (2, 12)
NATS_STORE = "1PB"
"""By default NATS takes three quarters of the free space at its start, and then refuses to create a stream with a
larger bound: on a small disk Touchstone could not start. Instead, the disk's low-water mark bounds it."""
_INHERITED = {
    "PATH", "HOME", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
}  # fmt: skip


def nats_process(settings: Settings, state: StateDir, environ: Mapping[str, str]) -> Process:
    """Writes its configuration. Raises LaunchError when no fitting nats-server is installed."""
    # Without `sync_interval: always` a power loss takes up to two minutes of acknowledged messages.
    config = state.write_private(
        "nats.conf",
        f'listen: "127.0.0.1:{settings.nats_port}"\n'
        f'http: "127.0.0.1:{settings.nats_monitor_port}"\n'
        f'authorization {{ token: "{state.nats_token()}" }}\n'
        "max_payload: 1MB\n"
        f'jetstream {{ store_dir: "{settings.state_dir / "nats"}", sync_interval: always, '
        f"max_file_store: {NATS_STORE} }}\n",
    )
    # How other commands, such as the one that creates tokens, find NATS.
    state.write_private("nats-url", f"{nats_url(settings, state)}\n")
    return Process(
        "nats",
        (nats_binary(environ.get("PATH", "")), "-c", str(config)),
        environment(settings, environ),
        health.nats_ready(f"{settings.nats_monitor_url}/healthz", settings.nats_port, settings.state_dir),
        grace_s=4,
        look=health.nats_life(f"{settings.nats_monitor_url}/healthz"),
        before=partial(drop_probes, settings.state_dir / "nats"),
    )


def drop_probes(store: Path) -> None:
    """Removes the empty files with which nats-server tests whether it can write. A server that is killed during the
    test leaves its file. The next one then takes it for an account that it cannot resolve, and never becomes
    healthy."""
    for file in store.glob("jetstream/_test_*"):
        if file.is_file() and not file.stat().st_size:
            file.unlink()


def service_processes(settings: Settings, state: StateDir, environ: Mapping[str, str]) -> list[Process]:
    """All except NATS. Processes that send work stop before those that take it. Raises LaunchError for wrong TLS
    settings."""
    common = environment(settings, environ) | addresses(settings, state)
    # Providers' keys are in the user's environment, and only evaluators call providers.
    keys = {name: value for name, value in environ.items() if not name.startswith("TOUCHSTONE_")}

    try:
        trusted = rpc.Tls.from_env(environ).channel_credentials()
    except InvalidRequestError as error:
        raise LaunchError(error.message) from error

    def served(
        name: str,
        module: str,
        variables: Mapping[str, str],
        address: str,
        *options: str,
        stage: int,
        grace_s: float,
    ) -> Process:
        service = health.SCHEDULER if name == "scheduler" else ""
        ready, alive = health.grpc_health(address, trusted, service), health.grpc_life(address, trusted, service)
        command = (*_module(module), *options)
        return Process(name, command, {**variables, **_metrics(settings, name)}, ready, stage, grace_s, alive)

    def evaluator(number: int, port: int) -> Process:
        name, address = f"evaluator-{number}", f"127.0.0.1:{port}"
        own = {
            "TOUCHSTONE_EVALUATOR_NAME": name,
            "TOUCHSTONE_EVALUATOR_LISTEN": address,
            "TOUCHSTONE_GRACE_S": str(settings.evaluator_grace_s),
        }
        grace_s = settings.evaluator_grace_s + 2
        return served(name, "evaluator", keys | common | own, address, stage=3, grace_s=grace_s)

    results, scheduler = common["TOUCHSTONE_RESULTS"], common["TOUCHSTONE_SCHEDULER"]
    replica = common.get("TOUCHSTONE_REPLICA", "")
    copies = [served("replica", "results", common, replica, "--replica", stage=1, grace_s=5)] if replica else []
    return [
        served("results", "results", common, results, stage=1, grace_s=5),
        *copies,
        served("scheduler", "scheduler", common, scheduler, stage=2, grace_s=4),
        *(evaluator(number, port) for number, port in enumerate(settings.evaluator_ports, 1)),
        gateway_process(settings, state, environ),
    ]


def gateway_process(settings: Settings, state: StateDir, environ: Mapping[str, str]) -> Process:
    """It needs no disk, and answers before the others are ready."""
    common = environment(settings, environ) | addresses(settings, state)
    ready = health.http(f"{settings.page_url}/readyz")
    # Not /readyz: that waits for services, which may be what does not answer.
    alive = health.http_life(f"{settings.page_url}/healthz")
    variables = common | _metrics(settings, "gateway")
    return Process("gateway", _module("gateway"), variables, ready, stage=4, grace_s=6, look=alive)


def _metrics(settings: Settings, name: str) -> dict[str, str]:
    """Also if there are none: an address that the launcher was given would be the same for all."""
    port = settings.metrics_ports.get(name)
    return {"TOUCHSTONE_METRICS_LISTEN": f"127.0.0.1:{port}" if port else ""}


def nats_url(settings: Settings, state: StateDir) -> str:
    return f"nats://{state.nats_token()}@127.0.0.1:{settings.nats_port}"


def _module(service: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"services.{service}")


def addresses(settings: Settings, state: StateDir) -> dict[str, str]:
    """Where the services find each other, by environment variable."""
    scheduler, results = f"127.0.0.1:{settings.scheduler_port}", f"127.0.0.1:{settings.results_port}"
    replica = f"127.0.0.1:{settings.replica_port}" if settings.replica_port else ""
    return {
        **({"TOUCHSTONE_REPLICA": replica, "TOUCHSTONE_REPLICA_LISTEN": replica} if replica else {}),
        "TOUCHSTONE_NATS_URL": nats_url(settings, state),
        "TOUCHSTONE_NATS_MONITOR_URL": settings.nats_monitor_url,
        "TOUCHSTONE_SERVICE_TOKEN": state.service_token(),
        "TOUCHSTONE_SCHEDULER_NAME": "scheduler-1",
        "TOUCHSTONE_SCHEDULER_LISTEN": scheduler,
        "TOUCHSTONE_SCHEDULER": scheduler,
        "TOUCHSTONE_RESULTS_LISTEN": results,
        "TOUCHSTONE_RESULTS": results,
    }


def environment(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """What every process gets: Touchstone's own variables and what programs need, no keys of providers."""
    inherited = {
        name: value for name, value in environ.items() if name in _INHERITED or name.startswith(("LC_", "TOUCHSTONE_"))
    }
    own = {
        "TOUCHSTONE_STATE_DIR": str(settings.state_dir),
        "TOUCHSTONE_HTTP_HOST": settings.http_host,
        "TOUCHSTONE_HTTP_PORT": str(settings.http_port),
        "PYTHONUNBUFFERED": "1",
    }
    if settings.data_dir:
        own["TOUCHSTONE_DATA_DIR"] = str(settings.data_dir)
    if settings.endpoints:
        own["TOUCHSTONE_ENDPOINTS"] = str(settings.endpoints)
    return inherited | own


def nats_binary(path: str) -> str:
    """The first nats-server on PATH that is new enough, else the one installed next to Python."""
    found: list[str] = []
    for candidate in _candidates(path):
        version = _version(candidate)
        if version >= LEAST_NATS:
            return candidate
        found.append(f"{candidate} is {'.'.join(map(str, version))}")
    needed = ".".join(map(str, LEAST_NATS))
    raise LaunchError(
        f"nats-server {needed} or newer is not installed ({'; '.join(found) or 'none found'}). Run: make setup"
    )


def _candidates(path: str) -> Iterable[str]:
    on_path = shutil.which("nats-server", path=path)
    if on_path:
        yield on_path
    beside = Path(sys.executable).with_name("nats-server")
    if beside.exists():
        yield str(beside)


def _version(binary: str) -> tuple[int, ...]:
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    match = re.search(r"v(\d+)\.(\d+)\.(\d+)", answer)
    return tuple(int(part) for part in match.groups()) if match else ()
