"""The launcher, with a NATS that has a user with the least rights for each service, as on several machines.

`python -m tests.rights_launcher serve` takes the place of `python -m deploy.local serve`. The launcher itself, which
looks into every stream, has all rights.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from deploy.local import __main__ as command
from deploy.local import stack
from deploy.local.recovery import losses
from deploy.local.settings import Settings
from deploy.local.state import StateDir
from deploy.local.supervisor import Process
from services import bus
from services.bus.__main__ import make_keys, read_users
from services.bus.login import Login
from services.bus.rights import SETUP

_RESULTS_BYTES = 2 * 1024**3
_nats_process, _service_processes, _gateway = stack.nats_process, stack.service_processes, stack.gateway_process
_addresses, _opened = stack.addresses, losses.opened


def keys(state_dir: Path) -> Path:
    """The folder of the keys for an installation."""
    return state_dir.parent / "keys"


def login(state_dir: Path, service: str, port: int) -> dict[str, str]:
    """Variables with which a process is one of the services."""
    return {
        "TOUCHSTONE_NATS_URL": f"nats://127.0.0.1:{port}",
        "TOUCHSTONE_NATS_NKEY_SEED_FILE": str(keys(state_dir) / f"{service.partition('-')[0]}.seed"),
    }


def nats_process(settings: Settings, state: StateDir, environ: Mapping[str, str]) -> Process:
    made = _nats_process(settings, state, environ)
    folder = keys(settings.state_dir)
    if not folder.exists():
        make_keys(folder)
    configuration = settings.state_dir / "nats.conf"
    launcher = f'users: [\n    {{ user: launcher, password: "{state.nats_token()}" }}'
    lines = configuration.read_text().splitlines()
    rest = [line for line in lines if not line.startswith("authorization")]
    state.write_private("nats.conf", "\n".join([*rest, read_users(folder).replace("users: [", launcher, 1)]))
    return made


def nats_url(settings: Settings, state: StateDir) -> str:
    return f"nats://launcher:{state.nats_token()}@127.0.0.1:{settings.nats_port}"


def _as_user(process: Process, settings: Settings) -> Process:
    own = login(settings.state_dir, process.name, settings.nats_port)
    return replace(process, environment={**process.environment, **own})


def service_processes(settings: Settings, state: StateDir, environ: Mapping[str, str]) -> list[Process]:
    return [_as_user(process, settings) for process in _service_processes(settings, state, environ)]


async def opened(url: str) -> Mapping[str, losses.Reach]:
    """Before the services start, which may not create streams."""
    found = await _opened(url)
    folder = keys(Path(os.environ["TOUCHSTONE_STATE_DIR"]))
    seed = (folder / f"{SETUP}.seed").read_text().strip()
    connection = await bus.connect(f"nats://{url.rpartition('@')[2]}", SETUP, Login(seed))
    try:
        await connection.ensure(_RESULTS_BYTES)
    finally:
        await connection.close()
    return found


if __name__ == "__main__":
    stack.nats_process, stack.nats_url = nats_process, nats_url
    stack.service_processes = service_processes
    losses.opened = opened  # type: ignore[assignment]
    sys.exit(command.main())
