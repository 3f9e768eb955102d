"""A private NATS server on a folder of streams, while they are read or written."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.local.ports import free_port
from deploy.local.stack import NATS_STORE, nats_binary
from deploy.local.supervisor import CHILD
from services import bus

_STOP_S = 60.0


@asynccontextmanager
async def offline_nats(store: Path) -> AsyncIterator[bus.Bus]:
    """A connection to it; the server ends with the block, and with this process. Raises LaunchError without an
    nats-server, UnavailableError when it does not start."""
    port, token = free_port(), secrets.token_urlsafe(16)
    config = store.parent / f"{store.name}.conf"
    config.unlink(missing_ok=True)
    with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(
            f'listen: "127.0.0.1:{port}"\nauthorization {{ token: "{token}" }}\nmax_payload: 1MB\n'
            f'jetstream {{ store_dir: "{store}", max_file_store: {NATS_STORE} }}\n'
        )
    command = (nats_binary(os.environ.get("PATH", "")), "-c", str(config))
    server = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs on this loop
        (sys.executable, "-I", "-S", str(CHILD), str(os.getpid()), *command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        connection = await bus.connect(f"nats://{token}@127.0.0.1:{port}", "keeping")
        try:
            yield connection
        finally:
            await connection.close()
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        config.unlink(missing_ok=True)


@asynccontextmanager
async def copied_nats(store: Path, copy: Path) -> AsyncIterator[bus.Bus]:
    """A server on a temporary copy of the streams: a server cuts off what it cannot read."""
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(store, copy)
        async with offline_nats(copy) as connection:
            yield connection
    finally:
        shutil.rmtree(copy, ignore_errors=True)
