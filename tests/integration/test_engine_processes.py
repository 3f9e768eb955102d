"""Engines as processes: one at a time, none left behind, crashes told with the end of the log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.engine.ownership import Ownership
from services.evaluator.engine.process_table import process
from services.evaluator.engine.provider import EngineProvider
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.make_provider import provider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.engines import FAKE, Sampler, fake_command, fake_options, none_left, running
from tests.stack import until
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.stack

TASK = Catalogue(None).task("demo", "sentiment")
HOLDER = Path(__file__).with_name("engine_holder.py")
GONE_S = 2.0


def request(model: str = "a", prompt: str = "hello", index: int = 0) -> Request:
    item = Item(index, (Message("user", prompt),), "", f"hash-{prompt}-{index}", "")
    return Request(model, job_pb2.Sampling(), TASK, item)


async def answer(engine: EngineProvider, model: str = "a", prompt: str = "hello", index: int = 0) -> Response:
    return await engine.generate(request(model, prompt, index))


async def failure(engine: EngineProvider, model: str = "a", prompt: str = "hello", index: int = 0) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await answer(engine, model, prompt, index)
    return caught.value


Make = Callable[..., EngineProvider]


@pytest.fixture
async def engine(tmp_path: Path, tag: str) -> AsyncIterator[Make]:
    """Makes endpoints with fake engines; all are closed in the end."""
    made: list[EngineProvider] = []

    def make(*arguments: str, max_model_b: float = 0.0, **table: Any) -> EngineProvider:
        options = fake_options(tmp_path, *arguments, **table)
        made.append(EngineProvider(Endpoint("gpu0", "engine", engine=options, max_model_b=max_model_b), provider))
        return made[-1]

    yield make
    for provider_made in made:
        await provider_made.close()


@pytest.fixture
def tag(tmp_path: Path) -> Iterator[str]:
    """The state directory, which is in the command line of all that a test starts."""
    yield str(tmp_path)
    for pid in running(str(tmp_path)):
        os.kill(pid, signal.SIGKILL)


async def test_two_models_in_turn_are_never_two_engine_processes(engine: Make, tag: str) -> None:
    it = engine("--worker")
    with Sampler(tag, FAKE.name) as seen:
        texts = [(await answer(it, model)).text for model in ("a", "b", "a")]
        await asyncio.gather(*(answer(it, model, index=i) for i in range(10) for model in ("a", "b")))
        await it.close()
    assert texts == ["a", "b", "a"]
    assert len(seen.counts) > 10
    assert max(seen.counts) == 1
    assert not running(tag)


async def test_an_answer_is_the_servers_under_the_models_own_name(engine: Make) -> None:
    it = engine(served_as="{path}")
    response = await answer(it)
    assert (response.text, response.served_model, response.output_tokens) == ("a", "a", 1)
    assert it.resident_model == "a"
    await it.close()
    assert it.resident_model == ""


async def test_listing_starts_nothing_and_tells_what_files_and_server_tell(
    engine: Make, tmp_path: Path, tag: str
) -> None:
    folder = tmp_path / "models" / "a"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"max_position_embeddings": 77}')
    it = engine(models={"a": {"path": str(folder), "memory_gb": 0.001}, "b-7b": "/srv/b"})
    known, unknown = (await it.list_models()).models
    assert not running(tag)
    assert (known.context_length, known.memory_bytes) == (77, 1_000_000)
    assert known.digest.startswith("sampled-sha256:")
    assert (unknown.digest, unknown.parameters_b) == ("", 7)
    await it.ready("a")
    listing = await it.list_models()
    assert listing.server == "vLLM"
    assert listing.models[0].context_length == 2048


async def test_a_crash_in_the_middle_is_retryable_and_the_next_call_finds_the_engine_again(
    engine: Make, tag: str
) -> None:
    it = engine("--latency", "0.1", "--worker")
    await answer(it)
    calls = [answer(it, index=i) for i in range(4)]
    results = await asyncio.gather(*calls, failure(it, prompt="crash"), return_exceptions=True)
    crash = results[-1]
    assert isinstance(crash, ProviderError)
    assert (crash.retryable, crash.unreachable, crash.fatal) == (True, True, False)
    assert crash.message == (
        "gpu0: The engine for a ended with exit code 7. Its log ends with: RuntimeError: out of cards"
    )
    assert crash.detail.startswith("loading a\n")
    assert len(crash.detail.encode()) <= 4000
    assert all(isinstance(r, Response) or r.unreachable for r in results if isinstance(r, ProviderError | Response))
    assert (await answer(it)).text == "a"
    assert len(running(tag, FAKE.name)) == 1


async def test_three_crashes_in_a_row_are_fatal(engine: Make) -> None:
    it = engine()
    errors = [await failure(it, prompt="crash", index=i) for i in range(3)]
    assert [error.fatal for error in errors] == [False, False, True]
    assert "It was started 3 times." in errors[-1].message
    assert "out of cards" in errors[-1].detail


async def test_an_item_that_crashes_the_engine_each_time_is_given_up_alone(engine: Make) -> None:
    it = engine()
    errors = []
    for i in range(3):
        errors.append(await failure(it, prompt="crash"))
        await answer(it, index=i)
    assert [(error.retryable, error.fatal) for error in errors] == [(True, False), (True, False), (False, False)]
    assert errors[-1].message == "gpu0: the engine crashed each time it was sent this item."


async def test_an_engine_that_ends_while_loading_is_fatal_at_its_third_start(engine: Make) -> None:
    it = engine("--fail")
    errors = [await failure(it) for _ in range(3)]
    assert [error.fatal for error in errors] == [False, False, True]
    assert errors[-1].message == (
        "gpu0: The engine for a ended with exit code 1 before it was ready. Its log ends with: "
        "ValueError: no such architecture. It was started 3 times. Fix the cause, then retry the job."
    )


async def test_an_engine_that_never_gets_healthy_is_fatal_after_its_time_with_the_log(engine: Make, tag: str) -> None:
    it = engine("--delay", "60", start_timeout_s=3)
    began = time.monotonic()
    error = await failure(it)
    assert 3 <= time.monotonic() - began < 30
    assert error.fatal
    assert error.message.startswith("gpu0: The engine for a was not ready after 3 s.")
    assert "loading a" in error.detail
    assert not running(tag)


async def test_a_command_that_does_not_exist_is_told_by_its_name(engine: Make) -> None:
    it = engine(command=["no-such-engine", "{port}"])
    error = await failure(it)
    assert "could not be started" in error.message
    assert "no-such-engine" in error.message


async def test_an_engine_that_ignores_sigterm_is_killed_after_the_grace(engine: Make, tag: str) -> None:
    it = engine("--ignore-sigterm", "--worker", stop_grace_s=0.5)
    await it.ready("a")
    began = time.monotonic()
    await it.close()
    assert time.monotonic() - began >= 0.5
    assert not running(tag)


async def test_too_little_memory_refuses_before_anything_starts(engine: Make, tmp_path: Path) -> None:
    it = engine(models={"a": {"path": "/srv/a", "memory_gb": 1_000_000}})
    error = await failure(it)
    assert error.fatal
    assert "a needs 1e+06 GB of memory" in error.message
    assert not (tmp_path / "logs").exists()


async def test_a_larger_model_than_the_endpoint_takes_is_refused_before_anything_starts(
    engine: Make, tmp_path: Path
) -> None:
    it = engine(models=["/srv/a-70b"], max_model_b=8)
    error = await failure(it, "a-70b")
    assert error.message.startswith("a-70b has 70 billion parameters; gpu0 takes at most 8.")
    assert not (tmp_path / "logs").exists()


async def test_an_unknown_model_is_fatal_and_the_known_ones_are_named(engine: Make) -> None:
    it = engine()
    assert (await failure(it, "c")).message == "gpu0 does not have model c. Choose one of a, b."


async def test_a_chatty_engine_fills_no_disk(engine: Make, tmp_path: Path, tag: str) -> None:
    noisy = "import sys\nfor i in range(400000): print(i, 'x' * 60)\nprint('the end')"
    it = engine(command=[sys.executable, "-S", "-c", noisy, "{port}", tag])
    error = await failure(it)
    assert error.detail.splitlines()[-1] == "the end"
    assert len(error.detail.splitlines()) == 30
    logs = list((tmp_path / "logs").iterdir())
    assert len(logs) == 2
    assert sum(log.stat().st_size for log in logs) < 20 * 2**20


# -- none left ---------------------------------------------------------------------------------------------------------


def hold(state_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    """A process that has an engine, ready."""
    command = fake_command(str(state_dir), *arguments)
    # Through its input, as its own command line must not hold the tag.
    held = subprocess.Popen([sys.executable, HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert held.stdin is not None
    assert held.stdout is not None
    held.stdin.write(json.dumps([str(state_dir), command]) + "\n")
    held.stdin.flush()
    assert held.stdout.readline() == "ready\n"
    return held


def kill(held: subprocess.Popen[str]) -> None:
    held.kill()
    held.wait()


def until_noted(state_dir: Path) -> None:
    """Returns once the record has the engine and the worker that it started."""

    def noted() -> bool:
        records = [json.loads(file.read_text()) for file in (state_dir / "engines").rglob("*.json")]
        pids = {pid for record in records for pid, _ in record["processes"]}
        there = running(str(state_dir))
        return len(there) == 2 and {*there} <= pids

    until(noted)


def keeper_of(engine_pid: int) -> int:
    found = process(engine_pid)
    assert found is not None
    return found.parent


@pytest.mark.parametrize("stubborn", [(), ("--ignore-sigterm",)])
def test_no_process_is_left_two_seconds_after_kill_9_of_the_evaluator(
    tmp_path: Path, tag: str, stubborn: tuple[str, ...]
) -> None:
    held = hold(tmp_path, "--worker", *stubborn)
    assert len(running(tag, FAKE.name)) >= 1
    kill(held)
    assert none_left(tag, GONE_S)


def test_kill_9_of_the_keeper_ends_the_engine_and_the_evaluator_ends_the_rest(tmp_path: Path, tag: str) -> None:
    held = hold(tmp_path, "--worker")
    until_noted(tmp_path)
    (main,) = running(tag, FAKE.name)
    os.kill(keeper_of(main), signal.SIGKILL)
    gone = none_left(tag, GONE_S)
    kill(held)
    assert gone


def test_what_was_left_when_evaluator_and_keeper_were_killed_is_ended_at_the_next_start(
    tmp_path: Path, tag: str
) -> None:
    held = hold(tmp_path, "--worker")
    until_noted(tmp_path)
    (main,) = running(tag, FAKE.name)
    keeper = keeper_of(main)
    os.kill(held.pid, signal.SIGSTOP)  # Or it would end the rest itself.
    os.kill(keeper, signal.SIGKILL)
    kill(held)
    time.sleep(0.3)
    assert running(tag)
    options = fake_options(tmp_path)
    ownership = Ownership()
    assert len(ownership.claim([Endpoint("gpu0", "engine", engine=options)])) == 1
    ownership.close()
    assert not running(tag)


def test_a_second_evaluator_of_the_same_state_directory_leaves_the_engine_out(tmp_path: Path) -> None:
    first, second = Ownership(), Ownership()
    engines = [Endpoint("gpu0", "engine", engine=fake_options(tmp_path)), Endpoint("plain", "openai")]
    assert [endpoint.name for endpoint in first.claim(engines)] == ["gpu0", "plain"]
    assert [endpoint.name for endpoint in second.claim(engines)] == ["plain"]
    first.close()
    assert [endpoint.name for endpoint in Ownership().claim(engines)] == ["gpu0", "plain"]


def test_a_record_of_a_stranger_with_the_same_pid_ends_nobody(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    found = process(stranger.pid)
    assert found is not None
    records = tmp_path / "engines" / "gpu0"
    records.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    record = {"boot": boot, "mark": "0" * 32, "processes": [[stranger.pid, found.started - 1]]}
    (records / "old.json").write_text(json.dumps(record))
    ownership = Ownership()
    ownership.claim([Endpoint("gpu0", "engine", engine=fake_options(tmp_path))])
    ownership.close()
    assert stranger.poll() is None
    assert not list(records.glob("*.json"))
    stranger.kill()
    stranger.wait()
