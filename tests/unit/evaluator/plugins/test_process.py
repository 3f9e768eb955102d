"""What a package's process bounds: code that raises, never ends, eats memory or ends the process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from services.evaluator.data.reader import DataMissingError
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import Limits, PluginError
from services.evaluator.plugins.registry import Plugins
from services.evaluator.plugins.remote import RemoteTask
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.suites import ListedSuite
from tests.pictures import PNG
from tests.plugin_packages import PROVIDERS, SCORERS, SUITES, install, scorer, suite, use
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.content_pb2 import ContentPart, Image
from touchstone.v1.dataset_pb2 import ChatMessage

JUDGES = {
    "raises": "raise ValueError('no\\nsuch word')",
    "hogs": "re.match('(a+)+$', 'a' * 40 + 'b'); return {'correct': 1.0}",
    "sleeps": "time.sleep(100)",
    "kills": "os.abort()",
    "eats": "return {'correct': float(len(bytearray(2**40)))}",
    "lies": "return {'correct': float('nan')}",
    "large": "return {'correct': 10**400}",
    "above": "return {'correct': 2.0}",
    "below": "return {'correct': -5.0}",
    "forgets": "return {}",
    "names": "return {'correct': 1.0, 'a\\0': 1.0}",
    "halves": "raise ValueError('\\ud800')",
    "own_class": "return {'correct': Own(1.0)}",
    "later": "raise UnavailableError('later.')",
}
HEAD = "class Own(float): pass\nfrom services.errors import UnavailableError\n"
HEAD += "from services.evaluator.data.reader import DataMissingError"
ROWS = {
    "gone": "raise OSError('no disk')",
    "away": "raise UnavailableError('later')",
    "absent": "raise DataMissingError('Pull it.')",
}
_ON_5, _ELSE = "if answer == '5': ", "\n    return {'correct': 0.0}"
ITEM = Item(0, (Message("user", "Which?"),), "B", "0", "0")
_CHECKED_HERE = ("lies", "large", "above", "below", "forgets", "names", "later")
"""What has no details in a log."""
PROVIDER = """
from services.errors import InvalidRequestError
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.items.task import Continuation, Response
from services.evaluator.plugins.contract import ProviderKind
from services.evaluator.providers.protocol.provider import Listing, ProviderError


class Speaks:
    async def list_models(self):
        return Listing(("a",))

    async def generate(self, request):
        return eval(request.model)

    async def loglikelihoods(self, request):
        return Response("", continuations=(Continuation("a", float("nan"), 1),))


def fail(error):
    raise error


KIND = ProviderKind(Kind("Speaks", addressed=False), lambda endpoint: Speaks())
"""
REFUSE = "def refuse(error):\n    raise error\n"
LIMITS = Limits(score_s=2, memory_bytes=512 * 2**20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    modules = {name: suite(name, judge=f"{_ON_5}{judge}{_ELSE}", head=HEAD) for name, judge in JUDGES.items()}
    modules |= {name: suite(name, rows=rows, head=HEAD) for name, rows in ROWS.items()}
    half = r'kind="text", prepare=lambda row: row | {"answer": "\ud800"}'
    modules |= {"halved": suite("halved").replace('kind="number"', half)}
    entries = {
        SUITES: {name: name for name in modules},
        SCORERS: {name: f"{name}:SCORER" for name in ("odd", "high", "picky", "prints", "forks")},
        PROVIDERS: {"speaks": "speaks:KIND"},
    }
    modules |= {"odd": scorer("odd", judge="raise KeyError(answer)"), "speaks": PROVIDER}
    modules |= {"high": scorer("high", judge="return {'correct': float(answer)}", right="'\\ud800' + value")}
    refuses = "refuse(ValueError('is a list; give one word' if value else '')) if value in (['a'], {}) else "
    modules |= {"picky": REFUSE + scorer("picky", right=f"{refuses}value['a'] if value == {{'b': 1}} else str(value)")}
    right = "; return {'correct': float(answer in answers)}"
    modules |= {"prints": scorer("prints", judge=f"print('x' * 100_000, flush=True); os.write(1, b'y'){right}")}
    # The process that it starts ends at once.
    modules |= {"forks": scorer("forks", judge=f"os.fork() or os._exit(0){right}")}
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


@pytest.mark.stack
async def test_code_that_raises_hangs_crashes_or_eats_memory_fails_by_its_packages_name(plugins: Plugins) -> None:
    reasons = {
        "raises": "failed while scoring item 3 of sums: ValueError: no such word.",
        "hogs": "took longer than 2 s while scoring item 3 of sums.",
        "sleeps": "took longer than 2 s while scoring item 3 of sums.",
        "kills": "ended its process with signal 6 while scoring item 3 of sums.",
        "eats": "failed while scoring item 3 of sums: MemoryError.",
        "lies": "failed while scoring item 3 of sums: its statistic correct is nan, not a number from 0 to 1.",
        "large": f"failed while scoring item 3 of sums: its statistic correct is 1{'0' * 79}, not a number "
        "from 0 to 1.",
        "above": "failed while scoring item 3 of sums: its statistic correct is 2.0, not a number from 0 to 1.",
        "below": "failed while scoring item 3 of sums: its statistic correct is -5.0, not a number from 0 to 1.",
        "forgets": "failed while scoring item 3 of sums: its statistic correct is missing.",
        "names": "failed while scoring item 3 of sums: 'a\\x00' is not a name of a statistic: a text of 1 to 80 "
        "characters.",
        "halves": "failed while scoring item 3 of sums: ValueError: ?.",
        "own_class": "failed while scoring item 3 of sums: it gave an object of own_class.Own. Give plain texts, "
        "numbers, lists and dictionaries.",
        "later": "failed while scoring item 3 of sums: later.",
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
        name: f"The plug-in odd-package 1.0 {reason}{details if name not in _CHECKED_HERE else ''}"
        for name, reason in reasons.items()
    }
    assert "own_class" not in sys.modules  # The code of a package never runs here.


@pytest.mark.stack
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
    for wrong in ("2.0", "-5.0"):
        with pytest.raises(PluginError) as error:
            plugins.scorers["high"].judge(wrong, ["y"])
        assert error.value.message == (
            "The plug-in odd-package 1.0 failed while scoring an answer by high: "
            f"its statistic correct is {wrong}, not a number from 0 to 1."
        )
    assert plugins.scorers["high"].judge("0.5", ["y"]) == {"correct": 0.5}
    with pytest.raises(PluginError) as error:
        plugins.scorers["high"].right("x")
    assert error.value.message == (
        "The plug-in odd-package 1.0 failed while reading a reference by high: it gave a text with half a character, "
        r"'\ud800x'."
    )
    for name, kind, why in (
        ("gone", PluginError, "OSError: no disk. The evaluator's log has the details."),
        ("away", PluginError, "later."),
        # Of its own kind, so that a task that is optional is left out.
        ("absent", DataMissingError, "Pull it."),
    ):
        with pytest.raises(kind) as failed:
            _task(plugins.suites[name]).size()
        said = f"The plug-in odd-package 1.0 failed while reading the data of sums: {why}"
        assert (type(failed.value), failed.value.message) == (kind, said)
    with pytest.raises(PluginError, match=r"gave a text with half a character, '\\ud800'"):
        list(_task(plugins.suites["halved"]).items([0]))


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


async def test_a_providers_answer_is_checked_before_it_is_scored(plugins: Plugins) -> None:
    """A response of the wrong types is a failed call, and no fault of the suite that would score it."""
    provider = plugins.provider(Endpoint(name="one", kind="speaks"))
    assert provider is not None

    async def asked(model: str) -> Response:
        return await provider.generate(Request(model, job_pb2.Sampling(), cast("Any", None), ITEM))

    refused = {
        "Response(5)": "its response has int as text",
        "Response('', finish_reason=None)": "its response has NoneType as finish_reason",
        "Response('', tool_calls=[{}])": "tool_calls of its response is not a tuple of ToolCall",
        "b'B'": "it gave bytes",
        "fail(InvalidRequestError('No such model.'))": "No such model",
    }
    for model, why in refused.items():
        with pytest.raises(ProviderError) as error:
            await asked(model)
        assert error.value.message == f"The plug-in odd-package 1.0 failed while asking one: {why}."
        assert error.value.retryable
    with pytest.raises(ProviderError) as error:
        await asked("fail(ProviderError('\\ud800', retryable=True, retry_after_s=float('nan')))")
    assert (error.value.message, error.value.retry_after_s) == ("?", None)

    found = await asked("Response('B', input_tokens='7', output_tokens=2**70, latency_ms=float('nan'), cost_usd=-1.0)")
    assert (found.input_tokens, found.output_tokens, found.latency_ms, found.cost_usd) == (None, None, 0.0, None)
    assert [each.partition(" ")[0] for each in found.doubtful] == ["output_tokens", "latency_ms", "cost_usd"]

    with pytest.raises(ProviderError, match="a log-likelihood of its response is no number"):
        await provider.loglikelihoods(Request("m", job_pb2.Sampling(), cast("Any", None), ITEM))
    with pytest.raises(ProviderError, match="its listing has other things than models"):
        await provider.list_models()


async def test_an_answer_to_a_call_that_was_given_up_harms_no_other(plugins: Plugins) -> None:
    task = _task(plugins.suites["raises"])
    process = plugins.suites["raises"].process
    running = await asyncio.get_running_loop().run_in_executor(None, process._process)
    _, given_up = running.ask(messages.Alive())
    given_up.cancel()  # Before the call itself is taken back, its answer may come.
    assert await asyncio.get_running_loop().run_in_executor(None, task.size) == 20
    assert not running.ended


async def test_a_value_error_of_a_reference_is_said_of_it_and_others_name_the_package(plugins: Plugins) -> None:
    picky = plugins.scorers["picky"]
    assert await asyncio.to_thread(picky.right, 3) == "3"
    with pytest.raises(ValueError, match=r"^is a list; give one word$"):
        await asyncio.to_thread(picky.right, ["a"])
    with pytest.raises(ValueError, match=r"^cannot be used by picky$"):
        await asyncio.to_thread(picky.right, {})
    with pytest.raises(PluginError, match=r"odd-package 1.0 failed while reading a reference by picky: KeyError"):
        await asyncio.to_thread(picky.right, {"b": 1})


async def test_code_that_prints_or_forks_is_answered_once(plugins: Plugins) -> None:
    for name in ("prints", "forks"):
        scored = plugins.scorers[name]
        assert [await asyncio.to_thread(scored.judge, text, ("a",)) for text in "aba"] == [
            {"correct": 1.0},
            {"correct": 0.0},
            {"correct": 1.0},
        ]


async def test_a_kind_of_a_plugin_gets_the_bytes_of_images_and_the_calls(plugins: Plugins) -> None:
    provider = plugins.provider(Endpoint("e", "speaks"))
    assert provider is not None
    more = ChatMessage(role="user", parts=[ContentPart(image=Image(media_type="image/png", data=PNG))])
    more.tool_calls.add(id="c", name="f", arguments="{}")
    item = Item(0, (Message("user", "", more),), "", "0", "0")
    shown = (
        "Response(str((request.item.messages[0].more.parts[0].image.data, request.item.messages[0].more.tool_calls)))"
    )
    sampling = job_pb2.Sampling()
    response = await provider.generate(Request(shown, sampling, cast("Any", None), item))
    assert response.text == str((PNG, more.tool_calls))
