"""Spans of one job come together in one trace, whoever sends them, and none stops a job."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest

from services.errors import InvalidRequestError
from services.telemetry import traces
from services.telemetry.serving import Settings as Served
from services.telemetry.serving import serve
from services.telemetry.traces import Settings, sending
from tests.servers.collector import Collector, collector

JOB = str(uuid.uuid4())
BEGAN = 1_800_000_000.25


@pytest.fixture
def collected() -> Iterator[Collector]:
    with collector() as kept:
        yield kept


async def test_a_job_has_one_trace_whoever_adds_to_it(collected: Collector) -> None:
    settings = Settings(f"{collected.url}/v1/traces")
    async with sending("evaluator", settings):
        own = traces.unit(3, 1)
        traces.add("unit", JOB, 1, BEGAN, BEGAN + 1, {"touchstone.items": 32}, own=own, kind=traces.CONSUMER)
        traces.add("call", JOB, 1, BEGAN, BEGAN + 0.5, {}, under=own, kind=traces.CLIENT, failed="It was refused.")
    async with sending("scheduler", settings):
        traces.add("job", JOB, 1, BEGAN - 1, BEGAN + 2, {}, own=traces.WHOLE, under=None)
        traces.add("job", JOB, 2, BEGAN + 3, BEGAN + 4, {}, own=traces.WHOLE, under=None)
    spans = {(one.name, one.span.start_time_unix_nano): one for one in collected.spans}
    unit, call, job, again = (
        spans[name, int(at * 1e9)]
        for name, at in (("unit", BEGAN), ("call", BEGAN), ("job", BEGAN - 1), ("job", BEGAN + 3))
    )
    assert {one.trace for one in spans.values()} == {JOB.replace("-", "")}
    assert [job.parent, unit.parent, call.parent, again.parent] == ["", job.id, unit.id, ""]
    assert job.id != again.id
    assert [one.service for one in (unit, job)] == ["touchstone-evaluator", "touchstone-scheduler"]
    assert unit.attributes == {"touchstone.items": 32}
    assert (call.failed, call.span.status.message, unit.failed) == (True, "It was refused.", False)
    assert unit.span.end_time_unix_nano - unit.span.start_time_unix_nano == 1_000_000_000


@pytest.mark.parametrize(
    ("error", "said"), [(None, ""), (ValueError("a secret"), "ValueError"), (asyncio.CancelledError(), "stopped")]
)
async def test_a_span_of_a_context_says_how_it_ended(
    collected: Collector, error: BaseException | None, said: str
) -> None:
    async with sending("results", Settings(f"{collected.url}/v1/traces")):
        with suppress(ValueError, asyncio.CancelledError):
            async with traces.spanning("score", JOB, 1, {"touchstone.items": 3}):
                if error is not None:
                    raise error
    (span,) = collected.spans
    assert (span.name, span.attributes, span.failed) == ("score", {"touchstone.items": 3}, bool(said))
    assert span.span.status.message == said
    assert time.time() - 60 < span.span.start_time_unix_nano / 1e9 <= span.span.end_time_unix_nano / 1e9


async def test_a_request_is_linked_to_the_span_of_its_caller(collected: Collector) -> None:
    caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with sending("gateway", Settings(f"{collected.url}/v1/traces")):
        for given in (
            caller,
            "",
            caller[:-1],
            caller.replace("4bf92f", "zzzzzz"),
            "00-" + "0" * 32 + caller[35:],
            "x\n",
        ):
            traces.add("POST /run", JOB, 1, BEGAN, BEGAN, {}, caller=given)
    linked, *others = [list(one.span.links) for one in collected.spans]
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in linked] == [tuple(caller.split("-")[1:3])]
    assert others == [[]] * 5


async def test_the_same_share_of_items_is_chosen_everywhere(collected: Collector) -> None:
    assert not traces.chosen(JOB, "sst2", 1, 0)
    found = []
    for share in (0.0, 0.1, 0.1, 1.0):
        async with sending("evaluator", Settings(collected.url, share)):
            found.append({position for position in range(2000) if traces.chosen(JOB, "sst2", position, 0)})
    assert [len(one) for one in (found[0], found[3])] == [0, 2000]
    assert found[1] == found[2]
    # Five standard deviations, also of each hundred.
    assert 133 < len(found[1]) < 267
    assert all(len(found[1] & {*range(first, first + 100)}) < 25 for first in range(0, 2000, 100))


@pytest.mark.parametrize("job_id", ["", "not-an-id", "é", "0" * 32, "x" * 36])
async def test_what_is_no_job_has_no_span(collected: Collector, job_id: str) -> None:
    async with sending("results", Settings(collected.url)):
        traces.add("store", job_id, 1, BEGAN, BEGAN, {})
    assert collected.spans == []


async def test_times_that_run_backwards_make_no_negative_length(collected: Collector) -> None:
    async with sending("results", Settings(collected.url)):
        traces.add("store", JOB, 1, BEGAN, BEGAN - 5, {})
    assert collected.spans[0].span.end_time_unix_nano == collected.spans[0].span.start_time_unix_nano


@pytest.mark.parametrize("kind", ["refuses", "hangs", "is away"])
async def test_a_collector_in_trouble_holds_nobody_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_END_S", 0.1)
    with collector() as kept, socket.create_server(("127.0.0.1", 0)) as silent:
        kept.status = 503
        hangs = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        url = {"refuses": kept.url, "hangs": hangs, "is away": "http://127.0.0.1:9/v1/traces"}[kind]
        async with sending("evaluator", Settings(url)):
            for _ in range(9_000):
                traces.add("unit", JOB, 1, BEGAN, BEGAN, {})
            ending = time.monotonic()
        assert time.monotonic() - ending < 2
    assert not traces.on()


def test_nothing_is_sent_or_imported_without_a_url() -> None:
    code = (
        "import asyncio, sys\n"
        "from services.telemetry import serving, traces\n"
        "async def main():\n"
        "    async with serving.serve('results', serving.Settings.from_env()):\n"
        "        traces.add('store', 'a', 1, 0, 0, {})\n"
        "        assert not traces.on()\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


async def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_TRACES_URL needs the packages of OpenTelemetry"):
        async with serve("results", Served(traces=Settings("http://127.0.0.1:4318"))):
            pass


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://collector/own/path", "https://collector/own/path"),
        ("", ""),
    ],
)
def test_a_url_without_a_path_gets_the_usual_one(monkeypatch: pytest.MonkeyPatch, given: str, url: str) -> None:
    monkeypatch.setenv("TOUCHSTONE_TRACES_URL", given)
    assert Settings.from_env() == Settings(url)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOUCHSTONE_TRACES_URL", "collector:4318"),
        ("TOUCHSTONE_TRACES_URL", "http://a:1,http://b:2"),
        ("TOUCHSTONE_TRACED_CALLS", "1.5"),
        ("TOUCHSTONE_TRACED_CALLS", "nan"),
    ],
)
def test_wrong_settings_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidRequestError, match=name):
        Settings.from_env()
