"""A disk that is full for seconds, for a minute, and at start: all goes on by itself, with all that was stored."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.chaos.invariants import violations
from tests.chaos.launched import SERVICES, Launched, until, until_answered
from tests.chaos.shooting import job_under_watch
from tests.chaos.world import MODELS, World, open_world
from tests.stack import API

pytestmark = pytest.mark.chaos

DISK_BYTES = 200 * 2**20
RECOVERY_S = 30.0
"""From the moment of room until everything is ready."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own where the state directory will be."""
    folder = tmp_path / "state"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "touchstone", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Takes every byte of the disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(b"\0" * 2**20)
        with suppress(OSError):
            while True:
                file.write(b"\0" * 512)
    try:
        yield
    finally:
        ballast.unlink()


async def refusal(world: World) -> httpx.Response | None:
    """How a new job is refused, once it is refused for the disk."""
    async with httpx.AsyncClient(base_url=world.launched.page_url + API, trust_env=False, timeout=10) as client:
        body = {"project_id": 1, "suite": "glue", "config": {"provider": "stub", "model": MODELS[5]}}
        try:
            answer = await client.post("/run", json=body)
        except httpx.HTTPError:
            return None
    return answer if "The disk is full" in answer.text else None


async def page_says_so(world: World) -> bool:
    async with httpx.AsyncClient(base_url=world.launched.page_url, trust_env=False, timeout=10) as client:
        try:
            return "The disk is full" in (await client.get("/jobs", headers={"Accept": "text/html"})).text
        except httpx.HTTPError:
            return False


async def nothing_is_said_any_more(world: World) -> bool:
    async with httpx.AsyncClient(base_url=world.launched.page_url + API, trust_env=False, timeout=10) as client:
        try:
            answer = await client.get("/queue")
        except httpx.HTTPError:
            return False
    return answer.status_code == 200 and answer.json()["notice"] is None


async def every_address_says_so(launched: Launched) -> bool:
    """Whether pages and the API say what is waited for; False while the gateway starts."""
    async with httpx.AsyncClient(base_url=launched.page_url, trust_env=False, timeout=10) as client:
        try:
            page = await client.get("/jobs", headers={"Accept": "text/html"})
            answer = await client.get(f"{API}/results")
            ready = await client.get("/readyz")
        except httpx.HTTPError:
            return False
    assert [one.status_code for one in (page, answer, ready)] == [503] * 3
    assert [one.headers["Retry-After"] for one in (page, answer)] == ["30"] * 2
    for text in (page.text, answer.text):
        assert "The disk is full: " in text
        assert "Touchstone continues when there is room for 2.6 MB." in text
    return True


def gateway_pid(launched: Launched) -> int | None:
    """Found without the launcher's record, which a full disk does not take."""
    own = f"TOUCHSTONE_STATE_DIR={launched.state_dir}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if b"services.gateway" in command[1:3] and own in (folder / "environ").read_bytes().split(b"\0"):
                return int(folder.name)
    return None


SECONDS = [6.0] + [60.0] * (os.environ.get("TOUCHSTONE_NIGHTLY") == "1")


@pytest.mark.parametrize("seconds", SECONDS)
async def test_a_job_survives_a_disk_that_is_full_for_a_while(tmp_path: Path, disk: Path, seconds: float) -> None:
    async with open_world(tmp_path) as world:
        launched = world.launched
        async with job_under_watch(world, 0, MODELS[0]) as run:
            await run.reaches(0.3)
            with full(disk):
                began = time.monotonic()
                refused = await until_answered(lambda: refusal(world), 60, "new jobs are not refused for the disk")
                assert refused.status_code == 503
                assert refused.headers["Retry-After"] == "30"
                assert await page_says_so(world)
                await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
                assert shutil.disk_usage(disk).free < 2**20
            room = time.monotonic()
            await launched.until_ready()
            submitted = await world.submit(MODELS[1], ["cola"], limit=20)
            await until_answered(lambda: nothing_is_said_any_more(world), 60, "the queue still says that it is full")
            recovered_s = time.monotonic() - room
            print(f"\nfull for {room - began:.0f} s, ready {recovered_s:.1f} s after there was room")
            await run.reaches(1)
        assert recovered_s < RECOVERY_S
        assert [one for one in await violations(world, run) if "without a kill" not in one] == []
        assert (await world.finished(submitted, 120)).progress.items_done == 20
        said = launched.log("launcher")
        assert "The disk is full" in said
        assert "has room again" in said
        # Only the two that write may have to start again: NATS keeps the error of a failed write, and the results
        # service no longer trusts its open file. Which of them meets the full disk, and whether any does, is chance.
        ended = {line.split()[0] for line in said.splitlines() if "; starting it again" in line}
        assert ended <= {"nats", "results"}


async def test_a_disk_that_is_full_at_start_is_waited_for(tmp_path: Path, disk: Path) -> None:
    async with open_world(tmp_path) as world:
        launched = world.launched
        done = await world.submit(MODELS[0], ["cola"], limit=20)
        await world.finished(done, 120)
        await launched.stop()
        with full(disk):
            await launched.start()
            await until(lambda: "Touchstone starts by itself" in launched.log("launcher"), 60, "nothing is said")
            await until_answered(lambda: every_address_says_so(launched), 30, "no page says it")
            first = gateway_pid(launched)
            assert first
            os.kill(first, signal.SIGKILL)
            await until(lambda: gateway_pid(launched) not in (None, first), 30, "the gateway is not started again")
            await until_answered(lambda: every_address_says_so(launched), 30, "no page says it again")
            assert [name for name in SERVICES if launched.pid(name) and name != "gateway"] == []
            await launched.stop()
            assert launched.log("launcher").endswith("Stopped.\n")
            assert gateway_pid(launched) is None

            await launched.start()
            await until_answered(lambda: every_address_says_so(launched), 30, "no page says it")
            await launched.kill("launcher")
            await until(lambda: gateway_pid(launched) is None, 20, "the gateway outlives its launcher")
            await launched.start()
            await until_answered(lambda: every_address_says_so(launched), 30, "no page says it")
            waiting = gateway_pid(launched)
        room = time.monotonic()
        await launched.until_ready()
        assert time.monotonic() - room < RECOVERY_S
        assert gateway_pid(launched) == waiting
        assert len(await world.items(done)) == 20
        again = await world.submit(MODELS[1], ["cola"], limit=20)
        assert (await world.finished(again, 120)).progress.items_done == 20


async def test_services_that_die_on_a_full_disk_come_back_with_room(tmp_path: Path, disk: Path) -> None:
    async with open_world(tmp_path) as world:
        launched = world.launched
        done = await world.submit(MODELS[0], ["cola"], limit=20)
        await world.finished(done, 120)
        with full(disk):
            for name in ("results", "nats", "scheduler"):
                await launched.kill(name)
            await asyncio.sleep(15)
        room = time.monotonic()
        await launched.until_ready()
        recovered_s = time.monotonic() - room
        print(f"\nready {recovered_s:.1f} s after there was room")
        assert recovered_s < RECOVERY_S
        assert len(await world.items(done)) == 20
