"""The launcher with the real services: what `make run` and `make demo` start."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from deploy.local import health
from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from deploy.local.state import process_info

pytestmark = pytest.mark.stack

SERVICES = {"nats", "results", "scheduler", "evaluator-1", "gateway"}
LISTEN = {"results": "RESULTS", "scheduler": "SCHEDULER", "evaluator-1": "EVALUATOR"}
CANARY = "sk-canary-of-the-launcher-test"


@dataclass
class Launcher:
    """`python -m deploy.local <mode>` on its own state directory and port; everything else is left to it."""

    state_dir: Path
    mode: str = "run"
    port: int = field(default_factory=free_port)
    extra: dict[str, str] = field(default_factory=dict)
    seconds_to_end: float = 0.0
    """From its start to its last line, where that was waited for."""

    def __post_init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
        environment |= {"TOUCHSTONE_STATE_DIR": str(self.state_dir), "TOUCHSTONE_HTTP_PORT": str(self.port)}
        self.output_path = self.state_dir.with_suffix(".out")
        with self.output_path.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "deploy.local", self.mode],
                env=environment | self.extra,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.output_path.read_text()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def pids(self) -> dict[str, int]:
        record = json.loads((self.state_dir / "children.json").read_text())
        return {name: pid for name, (pid, _) in record["children"].items()}

    def wait_for(self, pattern: str, timeout_s: float = 180) -> str:
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.output)):
            assert self.process.poll() is None, f"the launcher ended early:\n{self.output}"
            assert time.monotonic() < deadline, f"no {pattern!r} in:\n{self.output}"
            time.sleep(0.05)
        return found.group()

    async def wait_ready(self, timeout_s: float = 60) -> None:
        """Until the gateway and every gRPC service say that they work."""
        probes = [health.http(f"{self.url}/readyz")]
        probes += [
            health.grpc_health(self.environ(name)[f"TOUCHSTONE_{listen}_LISTEN"]) for name, listen in LISTEN.items()
        ]
        deadline = time.monotonic() + timeout_s
        while not all([await probe() for probe in probes]):
            assert time.monotonic() < deadline, f"not ready:\n{self.output}"
            await asyncio.sleep(0.05)

    def environ(self, name: str) -> dict[str, str]:
        """The environment of a running process."""
        text = Path(f"/proc/{self.pids()[name]}/environ").read_text()
        return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=90)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One running stack, its demo done."""
    began = time.monotonic()
    launcher = Launcher(tmp_path_factory.mktemp("stack") / "var", extra={"SOME_PROVIDERS_KEY": CANARY})
    try:
        launcher.wait_for("Ctrl-C stops everything")
        launcher.seconds_to_end = time.monotonic() - began
        yield launcher
    finally:
        launcher.end()


def alive(pid: int) -> bool:
    info = process_info(pid)
    return info is not None and not info.zombie


def wait_dead(pids: Mapping[str, int], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while left := {name: pid for name, pid in pids.items() if alive(pid)}:
        assert time.monotonic() < deadline, f"still alive: {left}"
        time.sleep(0.02)


def test_run_ends_with_the_baselines_ranked_with_intervals(stack: Launcher) -> None:
    rows = re.findall(r"^ +(\d)  (\S+) +(0\.\d{3})  (0\.\d{3})–(0\.\d{3})", stack.output, re.MULTILINE)

    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert {row[1] for row in rows} == {"majority", "random", "bag-of-words"}
    assert rows[0][1] == "bag-of-words"
    assert all(float(low) < float(score) < float(high) for _, _, score, low, high in rows)
    assert stack.url in stack.output


def test_it_is_said_how_long_the_start_took(stack: Launcher) -> None:
    seconds = float(stack.wait_for(r"(?<=started in )[\d.]+"))

    assert 0 < seconds <= stack.seconds_to_end + 0.05, "which is rounded"


def test_only_evaluators_get_providers_keys(stack: Launcher) -> None:
    holders = {name for name in stack.pids() if CANARY in stack.environ(name).values()}

    assert holders == {"evaluator-1"}


def test_nothing_in_the_state_directory_is_open_to_others(stack: Launcher) -> None:
    kept = [stack.state_dir, *stack.state_dir.rglob("*")]
    modes = {path: path.stat().st_mode & 0o777 for path in kept if path.exists()}

    assert {path for path, mode in modes.items() if mode & 0o077} == set()
    assert {path.suffix for path in modes} >= {".blk", ".duckdb", ".log", ".conf"}


@pytest.mark.parametrize("name", sorted(SERVICES))
async def test_a_killed_service_comes_back_and_the_others_live_on(stack: Launcher, name: str) -> None:
    # Not while one still starts after its own turn: without NATS it would rightly end and start again.
    await stack.wait_ready()
    before = stack.pids()
    os.kill(before[name], signal.SIGKILL)

    stack.wait_for(f"{name} was terminated by SIGKILL; starting it again in 0.2 s")
    deadline = time.monotonic() + 60
    while stack.pids().get(name) in (None, before[name]):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    await stack.wait_ready()

    assert {**stack.pids(), name: 0} == {**before, name: 0}, stack.output


def test_a_second_launcher_on_the_same_state_is_refused_with_a_sentence(stack: Launcher) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "deploy.local"],
        env=dict(os.environ) | {"TOUCHSTONE_STATE_DIR": str(stack.state_dir), "TOUCHSTONE_HTTP_PORT": str(free_port())},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert second.returncode == 1
    assert f"Another Touchstone is running on {stack.state_dir} (pid {stack.process.pid})" in second.stderr
    assert set(stack.pids()) == SERVICES


def test_a_busy_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        launcher = Launcher(tmp_path / "var", port=busy.getsockname()[1])
        code = launcher.process.wait(timeout=90)

    assert code == 1
    assert f"Port {launcher.port} on 127.0.0.1 is in use." in launcher.output
    assert "TOUCHSTONE_HTTP_PORT" in launcher.output
    assert not (launcher.state_dir / "children.json").exists()


def test_two_stacks_run_side_by_side_and_a_later_run_knows_the_stored_demo(stack: Launcher, tmp_path: Path) -> None:
    other = Launcher(tmp_path / "var", "demo", extra={"TOUCHSTONE_EVALUATORS": "2"})
    try:
        assert other.process.wait(timeout=180) == 0, other.output
        assert httpx.get(f"{stack.url}/readyz", trust_env=False, timeout=30).status_code == 200
        assert "bag-of-words" in other.output
    finally:
        other.end()
    again = Launcher(tmp_path / "var")
    try:
        again.wait_for("Ctrl-C stops everything")
        assert "stored from an earlier run" in again.output
        assert "Running the demo suite" not in again.output
        pids = again.pids()
        assert again.stop() == 0
        wait_dead(pids)
    finally:
        again.end()


def test_killing_the_launcher_kills_every_child_and_a_new_one_carries_on(stack: Launcher) -> None:
    pids = stack.pids()
    assert set(pids) == SERVICES
    stack.process.kill()
    stack.process.wait()

    wait_dead(pids)
    again = Launcher(stack.state_dir)
    try:
        again.wait_for("Ctrl-C stops everything")
        assert "stored from an earlier run" in again.output
        assert not set(again.pids().values()) & set(pids.values())
    finally:
        again.end()
