"""The launcher's life: take the state directory, start everything, show the demo, stay, stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.local import stack
from deploy.local.demo import Demo
from deploy.local.disk import StateDisk
from deploy.local.ports import is_free
from deploy.local.recovery import losses
from deploy.local.recovery.exchange import require_whole
from deploy.local.settings import RESULTS_PORT, ROOT, SCHEDULER_PORT, LaunchError, Settings
from deploy.local.state import StateDir
from deploy.local.supervisor import Process, Supervisor
from deploy.local.terminal import Terminal, duration
from services import environment

INTERRUPTED = 130
BOUND_LOGS_EVERY_S = 2.0
RECORD_STREAMS_EVERY_S = 10.0


class _Stopped(Exception):  # noqa: N818 - not an error: the user asked for it
    """Ctrl-C or SIGTERM came first."""


async def launch(settings: Settings, environ: Mapping[str, str], terminal: Terminal, *, mode: str) -> int:
    """`mode` is "run", "demo" or "serve". Returns the exit code.

    Raises LaunchError when Touchstone cannot start or the demo fails.
    """
    began = time.monotonic()
    demo_only = mode == "demo"
    if demo_only and _tokens_needed(environ):
        raise LaunchError("The demo runs only in local mode. Unset TOUCHSTONE_AUTH, then start it again.")
    disk = StateDisk(settings.state_dir, environ)
    state = StateDir(settings.state_dir)
    state.close_to_others()
    require_whole(settings.state_dir)
    left = state.reap()
    if left:
        terminal.say(f"Stopped {left} processes that an earlier run left behind.")
    _require_free_ports(settings)
    supervisor = Supervisor(state, terminal.say, ROOT, silent_s=settings.silent_s, has_room=disk.has_room)
    stop = _stop_on_signals(supervisor, terminal)
    upkeep: asyncio.Task[None] | None = None
    recording: asyncio.Task[None] | None = None
    try:
        if not disk.has_room():
            gateway = stack.gateway_process(settings, state, environ)
            await _unless_stopped(stop, _until_room(disk, supervisor, gateway, terminal))
        upkeep = asyncio.create_task(_keep_up(disk, state, terminal))
        await _unless_stopped(stop, supervisor.start([stack.nats_process(settings, state, environ)]))
        url = stack.nats_url(settings, state)
        streams = await losses.opened(url)
        await _unless_stopped(stop, supervisor.start(stack.service_processes(settings, state, environ)))
        logs = _short(settings.state_dir / "logs")
        terminal.say(f"Touchstone is running: started in {duration(time.monotonic() - began)}, logs in {logs}")
        await losses.say_losses(state, url, terminal.say, streams)
        recording = asyncio.create_task(_record_streams(state, url, settings.nats_monitor_url, terminal))
        if mode != "serve" and not _tokens_needed(environ):
            async with Demo(settings.page_url, terminal) as demo:
                await _unless_stopped(stop, demo.show(again=demo_only))
        if demo_only:
            terminal.say()
            terminal.say(f"make run shows this on a page: {settings.page_url}")
        else:
            say_where(terminal, settings, environ)
            await _unless_stopped(stop, supervisor.watch())
    except _Stopped:
        return INTERRUPTED if demo_only else 0
    finally:
        for task in (upkeep, recording):
            if task is not None:
                task.cancel()
        if recording is not None:
            await losses.keep_record(state, settings.nats_monitor_url)
        await supervisor.stop()
        terminal.say("Stopped.")
        state.close()
    return 0


async def _until_room(disk: StateDisk, supervisor: Supervisor, gateway: Process, terminal: Terminal) -> None:
    """Returns once processes can write. The gateway needs no disk: until then every page says what Touchstone is
    waiting for.

    Raises LaunchError when the gateway cannot start.
    """
    supervisor.begin([gateway])
    room, watching = asyncio.create_task(disk.until_room(terminal.say)), asyncio.create_task(supervisor.watch())
    try:
        done, _ = await asyncio.wait((room, watching), return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        room.cancel()
        watching.cancel()


async def _keep_up(disk: StateDisk, state: StateDir, terminal: Terminal) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(disk.watch(terminal.say))
        while True:
            await asyncio.to_thread(state.bound_logs)
            await asyncio.sleep(BOUND_LOGS_EVERY_S)


async def _record_streams(state: StateDir, url: str, monitor_url: str, terminal: Terminal) -> None:
    await losses.say_unreadable(state, url, terminal.say)
    while True:
        await losses.keep_record(state, monitor_url)
        await asyncio.sleep(RECORD_STREAMS_EVERY_S)


def _stop_on_signals(supervisor: Supervisor, terminal: Terminal) -> asyncio.Event:
    """The event that Ctrl-C or SIGTERM sets. A second one ends everything at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    urgent: list[asyncio.Task[None]] = []

    def on_signal() -> None:
        if stop.is_set():
            urgent.append(loop.create_task(supervisor.kill()))
            return
        stop.set()
        terminal.keep()
        terminal.say("Stopping; press Ctrl-C again to stop everything at once.")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    return stop


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Does the work. Raises _Stopped, the work cancelled, when the event comes first."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise _Stopped
        task.result()
    finally:
        for each in (task, stopped):
            each.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


def _require_free_ports(settings: Settings) -> None:
    for variable, port in settings.fixed_ports.items():
        host = settings.http_host if variable == "TOUCHSTONE_HTTP_PORT" else "127.0.0.1"
        if not is_free(port, host):
            raise LaunchError(
                f"Port {port} on {host} is in use. Stop the process that listens there, or set {variable} to "
                "another port."
            )
    for name, port in settings.metrics_ports.items():
        if not is_free(port):
            raise LaunchError(
                f"Port {port} is in use, at which {name} would show its metrics. Stop the process that listens there, "
                "or set TOUCHSTONE_METRICS_PORT to another port."
            )


def say_where(terminal: Terminal, settings: Settings, environ: Mapping[str, str]) -> None:
    """Addresses, and what users need to sign in."""
    terminal.say()
    terminal.say(f"Page  {settings.page_url}")
    terminal.say(f"API   {settings.page_url}/api/v1/benchmarking")
    terminal.say(f"gRPC  127.0.0.1:{settings.scheduler_port} scheduler, 127.0.0.1:{settings.results_port} results")
    if settings.metrics_ports:
        shown = (f"127.0.0.1:{port} {name}" for name, port in settings.metrics_ports.items())
        terminal.say(f"Metrics of Prometheus at /metrics of {', '.join(shown)}")
    for words in _elsewhere(settings):
        terminal.say(words)
    if _tokens_needed(environ):
        terminal.say("Users need tokens here. Make one:")
        terminal.say(
            f"  TOUCHSTONE_STATE_DIR={_short(settings.state_dir)} .venv/bin/python -m services.gateway token create "
            "--user alice --role admin"
        )
    terminal.say("Ctrl-C stops everything.")


def _elsewhere(settings: Settings) -> Iterator[str]:
    """What other terminals need if the services are not at their usual addresses."""
    ports = {
        "TOUCHSTONE_SCHEDULER": (SCHEDULER_PORT, settings.scheduler_port),
        "TOUCHSTONE_RESULTS": (RESULTS_PORT, settings.results_port),
    }
    moved = {name: usual for name, (usual, chosen) in ports.items() if usual != chosen}
    if not moved:
        return
    taken = [str(usual) for name, usual in moved.items() if f"{name}_PORT" not in settings.fixed_ports]
    why = f"{' and '.join(taken)} {'is' if len(taken) == 1 else 'are'} taken. " if taken else ""
    yield f"{why}In other terminals:"
    yield f"  export {' '.join(f'{name}=127.0.0.1:{chosen}' for name, (_, chosen) in ports.items())}"


def _tokens_needed(environ: Mapping[str, str]) -> bool:
    return environment.text("TOUCHSTONE_AUTH", "local", environ) == "token"


def _short(path: Path) -> str:
    """Relative to the working directory if that is shorter."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
