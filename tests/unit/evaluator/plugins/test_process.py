"""What a package's process bounds: code that raises, never ends, eats memory or ends the process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.evaluator.items.task import Response
from services.evaluator.plugins.contract import Limits, PluginError
from services.evaluator.plugins.registry import Plugins
from services.evaluator.plugins.remote import RemoteTask
from services.evaluator.suites import ListedSuite
from tests.plugin_packages import SCORERS, SUITES, install, scorer, suite, use
from touchstone.v1 import suite_pb2

JUDGES = {
    "raises": "raise ValueError('no\\nsuch word')",
    "hogs": "re.match('(a+)+$', 'a' * 40 + 'b'); return {'correct': 1.0}",
    "sleeps": "time.sleep(100)",
    "kills": "os.abort()",
    "eats": "return {'correct': float(len(bytearray(2**40)))}",
    "lies": "return {'correct': float('nan')}",
}
_ON_5, _ELSE = "if answer == '5': ", "\n    return {'correct': 0.0}"
LIMITS = Limits(score_s=2, memory_bytes=512 * 2**20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    modules = {name: suite(name, judge=f"{_ON_5}{judge}{_ELSE}") for name, judge in JUDGES.items()}
    modules |= {"gone": suite("gone", rows="raise OSError('no disk')")}
    entries = {SCORERS: {"odd": "odd:SCORER"}, SUITES: {name: name for name in modules}}
    modules |= {"odd": scorer("odd", judge="raise KeyError(answer)")}
    install(site, "odd-package", modules, entries)
    return site


@pytest.fixture
async def plugins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Plugins]:
    use(monkeypatch, folder)
    found = await Plugins.load(LIMITS)
    yield found
    found.close()


def _task(suite: ListedSuite) -> RemoteTask:
    (definition,) = suite.definitions
    task = definition.task_on(None, suite_pb2.MODE_GENERATE)  # type: ignore[arg-type]
    assert isinstance(task, RemoteTask)
    return task


async def test_code_that_raises_hangs_crashes_or_eats_memory_fails_by_its_packages_name(plugins: Plugins) -> None:
    reasons = {
        "raises": "failed while scoring item 3 of sums: ValueError: no such word.",
        "hogs": "took longer than 2 s while scoring item 3 of sums.",
        "sleeps": "took longer than 2 s while scoring item 3 of sums.",
        "kills": "ended its process with signal 6 while scoring item 3 of sums.",
        "eats": "failed while scoring item 3 of sums: MemoryError.",
        "lies": "failed while scoring item 3 of sums: its statistic correct is nan.",
    }

    def said(name: str) -> str:
        task = _task(plugins.suites[name])
        (item, other) = task.items([3, 4])
        assert task.score(other, Response("Answer: 4")).statistics == {"correct": 0.0}
        with pytest.raises(PluginError) as error:
            task.score(item, Response("Answer: 5"))
        # And the package goes on.
        assert task.score(other, Response("Answer: 4")).statistics == {"correct": 0.0}
        return error.value.message

    def all_said() -> dict[str, str]:
        return {name: said(name) for name in reasons}

    found = await asyncio.get_running_loop().run_in_executor(None, all_said)
    details = " The evaluator's log has the details."
    assert found == {
        name: f"The plug-in odd-package 1.0 {reason}{details if name != 'lies' else ''}"
        for name, reason in reasons.items()
    }


async def test_calls_of_other_jobs_survive_the_end_of_the_process(plugins: Plugins) -> None:
    """Of a package whose code holds everything up, each other call is made again and answered."""
    task = _task(plugins.suites["hogs"])
    items = list(await asyncio.get_running_loop().run_in_executor(None, lambda: list(task.items(range(6)))))

    def score(place: int) -> str:
        try:
            return str(task.score(items[place], Response("Answer: 5" if place == 0 else "Answer: 1")).statistics)
        except PluginError as error:
            return error.message

    with ThreadPoolExecutor(6) as threads:
        first = threads.submit(score, 0)
        await asyncio.sleep(0.2)  # The others begin while it holds the process.
        others = [threads.submit(score, place) for place in range(1, 6)]
        assert "took longer than 2 s" in await asyncio.wrap_future(first)
        assert {await asyncio.wrap_future(other) for other in others} == {"{'correct': 0.0}"}


async def test_a_scorer_and_a_suites_data_fail_by_their_packages_name(plugins: Plugins) -> None:
    with pytest.raises(PluginError, match=r"odd-package 1\.0 failed while scoring an answer by odd: KeyError: 'x'\."):
        plugins.scorers["odd"].judge("x", ["y"])
    with pytest.raises(
        PluginError, match=r"odd-package 1\.0 failed while reading the data of sums: OSError: no disk\."
    ):
        _task(plugins.suites["gone"]).size()


async def test_closing_ends_what_never_ends(plugins: Plugins) -> None:
    task = _task(plugins.suites["sleeps"])
    loop = asyncio.get_running_loop()
    (item,) = await loop.run_in_executor(None, lambda: list(task.items([3])))
    score = loop.run_in_executor(plugins.suites["sleeps"].executor, task.score, item, Response("Answer: 5"))
    began = time.monotonic()
    plugins.close()
    with pytest.raises(PluginError):
        await score
    assert time.monotonic() - began < LIMITS.score_s
