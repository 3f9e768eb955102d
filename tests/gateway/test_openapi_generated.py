"""A client that a generator makes from the OpenAPI document makes every call."""

from __future__ import annotations

import asyncio
import enum
import importlib
import inspect
import json
import re
import subprocess
import sys
import typing
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from services import bus
from services.bus import contract
from services.evaluator.calls.chat_form import Completion
from services.evaluator.calls.responses_form import Written
from services.evaluator.items.task import Response
from services.gateway.api import routes as api
from services.gateway.api.declare.endpoint import Endpoint
from tests.dataset_store import row
from tests.gateway import conformance, fake_data, fake_world
from tests.gateway.fake_world import World
from tests.gateway.gateway_server import Running, running
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsServer
from tests.unit.test_api_guide import PAGE, Example, examples
from touchstone.v1 import call_pb2, dataset_pb2, job_pb2, results_service_pb2
from touchstone.v1.content_pb2 import ToolCall

PACKAGE = "generated_touchstone"
CALLS = ("/v1/chat/completions", "/v1/responses")
STREAMED = {"watchResults"}
"""Event streams, which end with their job: the generated client reads an answer whole."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a package with a module for each operation."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(conformance.document()))
    (folder / "config.yaml").write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    command += ["--config", "config.yaml", "--output-path", PACKAGE]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def module(package: str, endpoint: Endpoint) -> Any:
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", endpoint.name).lower()
    return importlib.import_module(f"{package}.api.default.{snake}")


def converted(value: str, annotation: Any) -> Any:
    """A query parameter's text as the kind of value that the generated function takes."""
    for kind in kinds(annotation):
        if inspect.isclass(kind) and issubclass(kind, enum.Enum):
            return kind(value)
        if kind in (int, float, bool):
            return json.loads(value)
    return value


def arguments(call: Any, example: Example) -> dict[str, Any]:
    route = example.endpoint.route
    pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route)
    matched = re.fullmatch(pattern, example.path)
    assert matched
    given = matched.groupdict() | dict(example.given)
    parameters = inspect.signature(call).parameters
    # Generated names avoid those of Python itself.
    named = {name if name in parameters else f"{name}_": value for name, value in given.items()}
    made = {name: converted(value, parameters[name].annotation) for name, value in named.items()}
    if "body" in parameters and example.body:
        body = next(kind for kind in kinds(parameters["body"].annotation) if hasattr(kind, "from_dict"))
        made["body"] = body.from_dict(json.loads(example.body))
    return made


def kinds(annotation: Any) -> tuple[Any, ...]:
    return typing.get_args(annotation) or (annotation,)


def test_the_document_is_valid() -> None:
    validate(conformance.document())


@pytest.mark.stack
def test_every_operation_is_generated(generated: str) -> None:
    assert len(api.ALL) > 50
    for endpoint in api.DOCUMENTED:
        assert callable(module(generated, endpoint).asyncio_detailed)


@pytest.fixture
async def calling(nats: NatsServer) -> AsyncIterator[Running]:
    """A gateway with an evaluator that answers every call of a model."""
    async with running(nats=nats.url) as started:
        serving = await bus.connect(nats.url, "evaluator")
        sessions = bus.CallSessions(serving, answer, most=10, most_bytes=1_000_000)
        endpoints = [endpoint.endpoint for endpoint in fake_data.endpoints()]
        task = asyncio.create_task(bus.serve_calls(sessions, endpoints))
        await until(lambda: all(nats.hears(contract.call_subject(endpoint)) for endpoint in endpoints))
        yield started
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await sessions.end(0)
        await serving.close()


async def answer(call: call_pb2.Call, body: bytes, outbox: bus.Outbox) -> None:
    """As an evaluator writes the answers of providers that do not speak OpenAI's API."""
    said = Response("HELLO", reasoning="It asks.", input_tokens=3, output_tokens=2, reasoning_tokens=1)
    said = replace(said, tool_calls=(ToolCall(id="call_1", name="weather", arguments='{"city":"Lyon"}'),))
    form: Any = Completion(call.call_id, call.model, 1_760_000_000)
    if call.api == call_pb2.Call.API_RESPONSES:
        form = Written(call.call_id, call.model, 1_760_000_000, json.loads(body))
    outbox.begin(200, {"content-type": "application/json"})
    await outbox.write(json.dumps(form.whole(said)).encode())


JOBS = tuple(re.findall(r"(?m)^(?:JOB|OTHER)=([\w-]+)$", PAGE))
OWNED = "0c3bb0a4-2c6b-5a0e-9d0d-6a6c2f0f3b1e"
FILE = "0f3a" * 8
DATASET = "5b0b8e1c9b6a4f0e8d7c6b5a49382716"
REFUSED = {
    "cancelBatch": 404,
    "compareJobs": 404,
    "compareModels": 404,
    "createBatch": 400,
    "deleteSchedule": 404,
    "deleteWebhook": 404,
    "getWatch": 404,
    "estimateBenchmark": 409,
    "getBatch": 404,
    "getNoise": 404,
    "getDecision": 404,
    "getReplay": 409,
    "listSideBySide": 404,
    "nameConfiguration": 404,
    "pauseSchedule": 404,
    "pilotBenchmark": 400,
    "preferAnswer": 404,
    "rateAnswers": 400,
    "redeliverWebhook": 404,
    "rerunItems": 400,
    "resumeSchedule": 404,
    "runOnDataset": 404,
}
"""Examples of the guide whose data the fake services do not have; all others are answered with 200."""


def furnish(world: World, name: str) -> None:
    """Makes what the guide's examples name, as it must be for this call: a job that is cancelled still runs."""
    world.jobs.clear()
    for digits in (DATASET, FILE):
        world.datasets[f"ds_{digits}"] = dataset_pb2.Dataset(
            dataset_id=f"ds_{digits}", name="rows.jsonl", owner="local", rows=1, is_file=digits == FILE
        )
        world.datasets[f"ds_{digits}"].uploaded_at.GetCurrentTime()
        world.rows[f"ds_{digits}"] = [row(1, reference="4")]
    for job_id in JOBS:
        spec = fake_world.spec(limit=40)
        if "Benchmark" in name:
            spec.dataset.dataset_id, spec.dataset.name = f"ds_{DATASET}", "rows.jsonl"
        made = world.add(spec, "local")
        del world.jobs[made.job_id]
        made.job_id = job_id
        world.jobs[job_id] = made
        world.start(job_id)
        if "retry" in name.lower():
            world.finish(job_id, job_pb2.Job.STATE_FAILED, "Stopped.")
        elif "cancel" not in name.lower():
            world.finish(job_id)
    run = call_pb2.RecordedRun(run_id=JOBS[0], name="support-bot", owner="local", models=["m@local"], calls=2)
    for stamp in (run.opened_at, run.last_at, run.closed_at):
        stamp.GetCurrentTime()
    if name != "closeRecordedRun":
        run.ClearField("closed_at")
    world.recorded[run.name] = results_service_pb2.CloseRecordedRunResponse(
        run=run, dataset_id=f"ds_{DATASET}", job_ids=JOBS[:1]
    )
    call = call_pb2.Call(call_id=OWNED, owner="local", endpoint="local", model="m", status=200, cost_usd=0.5, run="x")
    call.api, call.outcome = call_pb2.Call.API_CHAT, call_pb2.Call.OUTCOME_ANSWERED
    call.started_at.GetCurrentTime()
    world.calls = [call]
    world.usage = [call_pb2.CallUsage(owner="local", endpoint="local", model="m", calls=2, cost_usd=0.5)]


@pytest.mark.stack
async def test_every_call_of_the_guide_is_made_and_its_answer_read(calling: Running, generated: str) -> None:
    refused: dict[str, int] = {}
    for example in examples():
        if example.endpoint.name in STREAMED or example.endpoint.reads:
            continue
        furnish(calling.world, example.endpoint.name)
        call = module(generated, example.endpoint).asyncio_detailed
        client = importlib.import_module(generated).Client(base_url=calling.url, timeout=httpx.Timeout(30))
        said = await call(client=client, **arguments(call, example))
        about = f"{example.endpoint.name}: {said.status_code} {said.content[:300]!r}"
        kind = said.headers.get("content-type", "").partition(";")[0]
        assert said.parsed is not None or kind != "application/json", about
        if example.path not in CALLS:  # Evaluators write those: their schemas name only what clients need.
            whole = httpx.Response(said.status_code, content=said.content)
            conformance.check(example.method, example.path, said.status_code, kind, whole)
        if said.status_code != 200:
            refused[example.endpoint.name] = said.status_code
    assert refused == REFUSED
