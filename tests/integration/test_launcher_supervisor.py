"""The launcher's supervisor, on small real processes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from deploy.local import health, stack
from deploy.local.ports import free_port
from deploy.local.pulse import State
from deploy.local.settings import LaunchError, Settings
from deploy.local.state import StateDir, process_info
from deploy.local.supervisor import Probe, Process, Supervisor
from deploy.local.watching import Look
from services.rpc import DAMAGED_FILES, WRONG_SETTINGS

HOLDER = Path(__file__).with_name("launcher_child_holder.py")
SLEEP = "import time; time.sleep(600)"


async def always() -> bool:
    return True


def python(name: str, code: str, *, ready: Probe = always, stage: int = 0, grace_s: float = 30) -> Process:
    return Process(name, (sys.executable, "-S", "-c", code), dict(os.environ), ready, stage, grace_s)


class Lines(list[str]):
    """What was said, in order."""

    def holds(self, pattern: str) -> bool:
        return any(re.search(pattern, line) for line in self)


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
async def supervisor(tmp_path: Path, lines: Lines) -> AsyncIterator[Supervisor]:
    state = StateDir(tmp_path)
    supervisor = Supervisor(state, lines.append, tmp_path)
    yield supervisor
    await supervisor.kill()
    state.close()


async def eventually(condition: Callable[[], object], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    info = process_info(pid)
    return info is not None and not info.zombie


async def test_start_returns_when_every_process_is_ready(supervisor: Supervisor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    async def ready() -> bool:
        return flag.exists()

    await supervisor.start([python("a", f"open({str(flag)!r}, 'w'); {SLEEP}", ready=ready)])

    assert flag.exists()


async def test_what_was_begun_is_kept_running_and_not_started_twice(supervisor: Supervisor, lines: Lines) -> None:
    process = python("a", SLEEP)
    supervisor.begin([process])
    await eventually(lambda: supervisor.pid("a"))
    os.kill(supervisor.pid("a") or 0, signal.SIGKILL)
    await eventually(lambda: lines and supervisor.pid("a"))
    begun = supervisor.pid("a")

    await supervisor.start([process, python("b", SLEEP)])

    assert supervisor.pid("a") == begun
    assert supervisor.pid("b")


async def test_a_killed_process_is_restarted_and_named(supervisor: Supervisor, lines: Lines) -> None:
    await supervisor.start([python("a", SLEEP)])
    first = supervisor.pid("a")
    assert first
    os.kill(first, signal.SIGKILL)

    await eventually(lambda: supervisor.pid("a") not in (None, first))

    assert lines == ["a was terminated by SIGKILL; starting it again in 0.2 s"]


async def test_backoff_doubles_while_a_process_keeps_dying(supervisor: Supervisor, lines: Lines) -> None:
    await supervisor.start([python("a", "import time; time.sleep(0.1); raise SystemExit(3)")])

    await eventually(lambda: len(lines) >= 3)

    assert lines[:3] == [f"a ended with exit code 3; starting it again in {delay} s" for delay in ("0.2", "0.4", "0.8")]


async def test_a_process_that_cannot_start_ends_the_launch_with_its_last_words(supervisor: Supervisor) -> None:
    async def never() -> bool:
        return False

    with pytest.raises(LaunchError, match=r"(?s)a cannot start: it ended with exit code 1 5 times.*no such disk"):
        await supervisor.start([python("a", "raise SystemExit('no such disk')", ready=never)])


async def test_wrong_settings_end_the_launch_at_once_with_their_sentence(supervisor: Supervisor, lines: Lines) -> None:
    async def never() -> bool:
        return False

    code = f"print('touchstone: x is wrong. Set y.'); raise SystemExit({WRONG_SETTINGS})"
    with pytest.raises(LaunchError, match=r"^a cannot start: x is wrong. Set y.$") as refused:
        await supervisor.start([python("a", code, ready=never)])
    assert refused.value.code == WRONG_SETTINGS, "the launcher ends as the service does"
    assert lines == []


async def test_settings_that_became_wrong_end_nothing_else(
    supervisor: Supervisor, lines: Lines, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    code = (
        f"import os, sys, time; print('touchstone: x is wrong. Set y.', flush=True)\nif os.path.exists({str(flag)!r}):"
    )
    code += f" sys.exit({WRONG_SETTINGS})\n{SLEEP}"
    await supervisor.start([python("a", code)])
    flag.touch()
    pid = supervisor.pid("a")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: lines.holds(r"^a cannot start: x is wrong. Set y.; starting it again in"))
    flag.unlink()
    await eventually(lambda: supervisor.pid("a") not in (None, pid))


async def test_damaged_files_end_the_launch_also_when_it_ran_already(supervisor: Supervisor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    code = "import os, sys, time; print('touchstone: x is damaged. Repair it.', flush=True)\n"
    code += f"if os.path.exists({str(flag)!r}):"
    code += f" sys.exit({DAMAGED_FILES})\n{SLEEP}"
    await supervisor.start([python("a", code)])
    flag.touch()
    pid = supervisor.pid("a")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LaunchError, match=r"^a cannot start: x is damaged. Repair it.$"):
        await asyncio.wait_for(supervisor.watch(), 60)


async def test_processes_stop_from_the_highest_stage_down(supervisor: Supervisor, tmp_path: Path) -> None:
    order = tmp_path / "order"

    def noting(name: str) -> str:
        return (
            f"import pathlib, signal, sys, time\n"
            f"def end(*_):\n"
            f"    time.sleep(0.1); pathlib.Path({str(order)!r}).open('a').write('{name} '); sys.exit()\n"
            f"signal.signal(signal.SIGTERM, end)\n"
            f"pathlib.Path({str(tmp_path / name)!r}).touch()\n"
            f"time.sleep(600)"
        )

    def ready(name: str) -> Probe:
        async def probe() -> bool:
            return (tmp_path / name).exists()

        return probe

    await supervisor.start(
        [python(name, noting(name), stage=stage, ready=ready(name)) for name, stage in (("c", 2), ("a", 0), ("b", 1))]
    )
    await supervisor.stop()

    assert order.read_text().split() == ["c", "b", "a"]


async def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(
    supervisor: Supervisor, lines: Lines, tmp_path: Path
) -> None:
    flag = tmp_path / "deaf"

    async def deaf() -> bool:
        return flag.exists()

    code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); open({str(flag)!r}, 'w'); {SLEEP}"
    await supervisor.start([python("a", code, ready=deaf, grace_s=0.5)])
    pid = supervisor.pid("a")
    assert pid
    began = time.monotonic()

    await supervisor.stop()

    assert not alive(pid)
    assert time.monotonic() - began >= 0.5
    assert lines == ["a did not stop within 0.5 s; killing it"]


async def test_what_a_dead_process_started_is_gone_before_its_successor(
    supervisor: Supervisor, lines: Lines, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-S', '-c', {SLEEP!r}])\n"
        f"open({str(pids)!r}, 'a').write(f'{{child.pid}}\\n')\n"
        f"{SLEEP}"
    )

    async def ready() -> bool:
        return pids.exists() and pids.read_text().endswith("\n")

    await supervisor.start([python("a", code, ready=ready)])
    grandchild, leader = int(pids.read_text()), supervisor.pid("a")
    assert alive(grandchild)
    assert leader
    os.kill(leader, signal.SIGKILL)

    await eventually(lambda: lines)

    await eventually(lambda: not alive(grandchild))


# -- the launcher itself killed ----------------------------------------------------------------------------------------


def hold(state_dir: Path) -> tuple[subprocess.Popen[str], int, int]:
    """A launcher process with a child and a grandchild."""
    holder = subprocess.Popen([sys.executable, str(HOLDER), str(state_dir)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    child, grandchild = map(int, holder.stdout.readline().split())
    return holder, child, grandchild


async def test_killing_the_launcher_leaves_no_child_once_the_next_one_started(tmp_path: Path) -> None:
    holder, child, grandchild = hold(tmp_path)
    holder.kill()
    holder.communicate()
    await eventually(lambda: not alive(child))  # the kernel's doing, without any launcher
    assert alive(grandchild)

    state = StateDir(tmp_path)
    reaped = state.reap()
    state.close()

    assert reaped == 1
    assert not alive(grandchild)


def test_reaping_spares_a_stranger_who_got_a_recorded_pid(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-S", "-c", SLEEP], start_new_session=True)
    try:
        first = StateDir(tmp_path)
        first.record("scheduler", stranger.pid)
        first.close()

        state = StateDir(tmp_path)
        reaped = state.reap()
        state.close()

        assert reaped == 0
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_a_second_launcher_on_the_same_state_is_refused_and_told_the_pid(tmp_path: Path) -> None:
    holder, _, grandchild = hold(tmp_path)
    try:
        with pytest.raises(LaunchError, match=f"Another Touchstone is running on .* \\(pid {holder.pid}\\)"):
            StateDir(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
        os.kill(grandchild, signal.SIGKILL)


def test_the_service_token_is_kept_and_private(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    token = state.service_token()

    assert len(token) >= 32
    assert state.service_token() == token
    assert (tmp_path / "service-token").stat().st_mode & 0o777 == 0o600
    state.close()


def test_a_token_that_cannot_be_written_holds_until_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateDir(tmp_path)

    def no_space(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(StateDir, "write_private", no_space)
        token = state.nats_token()
        assert state.nats_token() == token
    assert state.nats_token() == token
    assert (tmp_path / "nats-token").read_text() == token
    state.close()


def test_a_full_disk_does_not_keep_the_state_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full, monkeypatch.context() as replaced:
        replaced.setattr(Path, "open", lambda *_, **__: full)
        replaced.setattr(full, "truncate", lambda _: None, raising=False)
        state = StateDir(tmp_path)
        state.close()
        assert full.closed


def test_a_long_log_is_set_aside_while_its_writer_goes_on(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    path, short = state.log("nats"), state.log("gateway")
    short.write_text("short\n")
    with path.open("ab", buffering=0) as writer:
        writer.write(b"x" * (10 * 1024 * 1024 + 1))
        state.bound_logs()
        writer.write(b"further\n")
    state.close()

    assert path.stat().st_size < 100_000
    aside = path.with_suffix(".log.1").read_bytes()
    assert aside + path.read_bytes() == b"x" * (10 * 1024 * 1024 + 1) + b"further\n"
    assert short.read_text() == "short\n"


def test_files_of_earlier_runs_are_closed_to_others(tmp_path: Path) -> None:
    open_file = tmp_path / "results" / "deeper" / "touchstone.duckdb"
    open_file.parent.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    for path in (open_file, elsewhere):
        path.touch()
        path.chmod(0o664)
    (tmp_path / "results" / "link").symlink_to(elsewhere)
    tmp_path.chmod(0o755)
    open_file.parent.chmod(0o755)
    state = StateDir(tmp_path)
    state.close_to_others()
    state.close()

    assert modes(tmp_path, open_file.parent, open_file) == [0o700, 0o700, 0o600]
    assert modes(elsewhere) == [0o664], "which is not Touchstone's, link or not"


def modes(*paths: Path) -> list[int]:
    return [path.stat().st_mode & 0o777 for path in paths]


# -- processes that live and do not answer -----------------------------------------------------------------------------

ANSWERING = (
    "import http.server, sys\n"
    "class Answer(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response({status}); self.end_headers(); self.wfile.write({text!r}.encode())\n"
    "    def log_message(self, *_): pass\n"
    "http.server.HTTPServer(('127.0.0.1', {port}), Answer).serve_forever()"
)


def answering(port: int, look: Look, status: int = 200, text: str = "") -> Process:
    """A server that gives every GET this answer."""
    code = ANSWERING.format(port=port, status=status, text=text)
    return Process("a", (sys.executable, "-c", code), dict(os.environ), always, look=look)


async def test_a_stopped_process_is_replaced(tmp_path: Path, lines: Lines) -> None:
    state, port = StateDir(tmp_path), free_port()
    look = health.http_life(f"http://127.0.0.1:{port}/")
    supervisor = Supervisor(state, lines.append, tmp_path, silent_s=1)
    try:
        await supervisor.start([answering(port, look)])
        first = supervisor.pid("a")
        assert first
        await answers(look, State.WELL)
        await asyncio.sleep(1.5)
        os.kill(first, signal.SIGSTOP)
        await eventually(lambda: supervisor.pid("a") not in (None, first))
        await answers(look, State.WELL)
    finally:
        await supervisor.kill()
        state.close()
    assert lines.holds(r"^a has not answered for \d+ s; ending it$")
    assert lines.holds("^a was terminated by SIGKILL; starting it again")


async def test_a_write_error_is_left_alone_until_the_disk_has_room(tmp_path: Path, lines: Lines) -> None:
    state, port, room = StateDir(tmp_path), free_port(), [False]
    look = health.nats_life(f"http://127.0.0.1:{port}/")
    supervisor = Supervisor(state, lines.append, tmp_path, silent_s=1, has_room=lambda: room[0])
    try:
        await supervisor.start([answering(port, look, 503, '{"error": "write 1.blk: no space left on device"}')])
        first = supervisor.pid("a")
        await answers(look, State.NO_ROOM)
        await asyncio.sleep(4)
        assert supervisor.pid("a") == first
        room[0] = True
        await eventually(lambda: supervisor.pid("a") not in (None, first))
    finally:
        await supervisor.kill()
        state.close()
    assert lines[0] == "a could not write to the disk, which has room again; ending it"
    assert lines[1].startswith("a was terminated by SIGTERM; starting it again")


async def test_a_full_disk_at_start_is_waited_out(tmp_path: Path, lines: Lines) -> None:
    state, flag = StateDir(tmp_path), tmp_path / "room"
    supervisor = Supervisor(state, lines.append, tmp_path, has_room=flag.exists)
    code = f"import os, sys, time\nif not os.path.exists({str(flag)!r}): sys.exit('no space')\n{SLEEP}"
    try:
        starting = asyncio.create_task(supervisor.start([python("a", code, ready=never)]))
        await eventually(lambda: len(lines) >= 5)
        assert not starting.done(), "more early ends than a launch survives otherwise"
        starting.cancel()
    finally:
        await supervisor.kill()
        state.close()


async def never() -> bool:
    return False


async def answers(look: Look, state: State) -> None:
    deadline = time.monotonic() + 30
    while await look() is not state:
        assert time.monotonic() < deadline, f"never {state}"
        await asyncio.sleep(0.05)


async def test_nats_starts_after_a_kill_in_the_middle_of_its_start(supervisor: Supervisor, tmp_path: Path) -> None:
    state_dir = tmp_path / "installation"
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")},
        "TOUCHSTONE_STATE_DIR": str(state_dir),
        "TOUCHSTONE_NATS_PORT": str(free_port()),
        "TOUCHSTONE_NATS_MONITOR_PORT": str(free_port()),
    }
    with closing(StateDir(state_dir)) as state:
        nats = stack.nats_process(Settings.from_env(environ), state, environ)
        # The server writes such a file to see whether it can, and removes it.
        left = state_dir / "nats" / "jetstream" / "_test_1460809473"
        left.parent.mkdir(parents=True)
        left.touch()
        await supervisor.start([nats])
        assert not left.exists()
