"""What an evaluator tells about itself, and the plans it makes."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.bus import EVALUATORS
from services.evaluator.catalogue import Catalogue
from services.evaluator.listing import listing
from services.evaluator.planning.planner import configuration
from tests.integration.evaluator_rig import Rig, open_rig, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, suite_pb2

State = endpoint_pb2.Endpoint


async def announced(rig: Rig, name: str = "evaluator-1") -> evaluator_pb2.Evaluator:
    msg = await rig.bus.kv_get(EVALUATORS, name)
    assert msg is not None
    return evaluator_pb2.Evaluator.FromString(msg.data or b"")


async def has_state(rig: Rig, state: endpoint_pb2.Endpoint.State) -> bool:
    return bool((await announced(rig)).endpoints[0].state == state)


def suite_spec(model: str = "stub", suite: str = "demo", **work: Any) -> job_pb2.JobSpec:
    return job_pb2.JobSpec(endpoint="stub", model=model, suite=job_pb2.SuiteWork(suite=suite, **work))


async def test_an_evaluator_announces_its_endpoints_models_and_suites(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OllamaServer() as stub:
        endpoint = stub_endpoint(stub.url, "ollama", concurrency=3, exclusive=True)
        async with running(nats, [endpoint]):
            await until(lambda: has_state(rig, State.STATE_REACHABLE))
            found = await announced(rig)
    assert {"demo", "glue", "superglue", "mmlu", "medical"} <= {suite.suite for suite in found.suites}
    told = found.endpoints[0]
    assert (told.endpoint, told.kind, told.server) == ("stub", "ollama", "Ollama 0.33.1")
    assert (told.concurrency, told.exclusive, told.detail) == (3, True, "")
    model = told.models[0]
    assert (model.model, model.digest, model.quantization) == ("stub", "sha256:stub", "Q4_K_M")
    assert (model.parameters_b, model.context_length, model.disk_bytes) == (7.6, 32768, 4_700_000_000)
    assert told.listing_ms > 0


async def test_a_hanging_provider_does_not_delay_announcing(nats: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener that takes connections and never answers."""
    monkeypatch.setattr(listing, "TIMEOUT_S", 600.0)
    connections: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: connections.append(writer), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    try:
        async with (
            open_rig(nats) as rig,
            OpenAIServer() as stub,
            running(nats, [stub_endpoint(stub.url), stub_endpoint(url, name="silent")]),
        ):
            await until(lambda: has_state(rig, State.STATE_REACHABLE))
            assert connections
            first = await announced(rig)
            found = first
            async with asyncio.timeout(30):
                while found.announced_at == first.announced_at:
                    await asyncio.sleep(0.05)
                    found = await announced(rig)
            assert found.endpoints[1].detail == "Its models are being listed."
    finally:
        silent.close()
        for writer in connections:
            writer.transport.abort()


async def test_a_dead_endpoint_is_down_with_the_remedy_and_comes_back(nats: NatsServer) -> None:
    port = free_port()
    stub = OllamaServer()
    async with open_rig(nats) as rig, running(nats, [stub_endpoint(f"http://127.0.0.1:{port}", "ollama")]):
        # Down it is called also before its models were asked for.
        detail = "Its models are being listed."
        async with asyncio.timeout(30):
            while detail == "Its models are being listed.":
                await until(lambda: has_state(rig, State.STATE_DOWN))
                detail = (await announced(rig)).endpoints[0].detail
        await stub.start(port)
        try:
            await until(lambda: has_state(rig, State.STATE_REACHABLE), 30)
        finally:
            await stub.stop()
    assert detail == f"stub does not answer at 127.0.0.1:{port}. Start it with `ollama serve`."


async def test_an_endpoint_without_its_key_is_not_configured(nats: NatsServer) -> None:
    endpoint = stub_endpoint("http://127.0.0.1:9/v1", api_key_env="STUB_KEY")
    async with open_rig(nats) as rig, running(nats, [endpoint]):
        await until(lambda: has_state(rig, State.STATE_NOT_CONFIGURED))
        assert (await announced(rig)).endpoints[0].detail == "Set STUB_KEY where the evaluator runs and restart it."
        plan = await rig.plan(suite_spec())
    assert plan.error == "AI provider error: API key not configured for stub"


async def test_a_rate_limit_shows_as_limited_with_the_time_left(nats: NatsServer) -> None:
    behaviour = Behaviour(faults=deque([Fault("429", retry_after="60")]))
    async with (
        open_rig(nats) as rig,
        OpenAIServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url)], settings(grace_s=0.0)),
    ):
        await until(lambda: has_state(rig, State.STATE_REACHABLE))
        await rig.release_items(await rig.job(), 1)
        await until(lambda: has_state(rig, State.STATE_LIMITED))
        assert (await announced(rig)).endpoints[0].detail.startswith("stub: rate limit, next call in ")


async def test_a_plan_counts_items_and_carries_the_receipt(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OllamaServer() as stub,
        running(nats, [stub_endpoint(stub.url, "ollama", concurrency=2)], settings(unit_size=24)),
    ):
        await until(lambda: has_state(rig, State.STATE_REACHABLE))
        spec = suite_spec(limit=100)
        plan = await rig.plan(spec)
    assert plan.error == ""
    assert [task.items for task in plan.tasks] == [100] * 4
    assert {task.unit_size for task in plan.tasks} == {24}
    receipt = plan.receipt
    assert (receipt.endpoint_kind, receipt.server, receipt.concurrency) == ("ollama", "Ollama 0.33.1", 2)
    assert receipt.model_digest == "sha256:stub"
    assert (receipt.parameters, receipt.template) == ('{"temperature":0}', "endpoint")
    assert receipt.configuration == configuration(spec, receipt, plan.tasks)


def test_the_configuration_depends_on_how_the_model_is_asked_and_not_on_which_items() -> None:
    spec, asked = suite_spec(), job_pb2.Receipt(model_digest="digest", parameters="{}", template="endpoint")
    base = configuration(spec, asked, [])
    assert configuration(suite_spec(limit=10, seed=3, repeats=1), asked, []) == base
    scoring = suite_spec()
    scoring.mode = suite_pb2.MODE_LOGLIKELIHOOD
    others = [
        configuration(suite_spec("other"), asked, []),
        configuration(spec, job_pb2.Receipt(model_digest="another", parameters="{}", template="endpoint"), []),
        configuration(spec, job_pb2.Receipt(model_digest="digest", parameters='{"seed":1}', template="endpoint"), []),
        configuration(spec, job_pb2.Receipt(model_digest="digest", parameters="{}", template="none"), []),
        configuration(suite_spec(shots=2), asked, []),
        configuration(suite_spec(repeats=3), asked, []),
        configuration(scoring, asked, []),
        configuration(spec, asked, [job_pb2.TaskPlan(task="a", prompt_hash="x")]),
    ]
    assert len({base, *others}) == 9


async def test_a_rescore_is_planned_although_its_endpoint_has_no_key(nats: NatsServer) -> None:
    endpoint = stub_endpoint("http://127.0.0.1:9/v1", api_key_env="STUB_KEY")
    spec = suite_spec(limit=3)
    spec.reuse.job_id = "source"
    async with open_rig(nats) as rig, running(nats, [endpoint]):
        plan = await rig.plan(spec)
    assert plan.error == ""
    assert [task.items for task in plan.tasks] == [3] * 4
    assert plan.receipt == job_pb2.Receipt(software=plan.receipt.software, source_job="source")
    assert plan.receipt.software


async def test_what_the_model_cannot_do_is_refused_when_planned(nats: NatsServer) -> None:
    scoring, taking, warm = suite_spec(suite="mmlu"), suite_spec(), suite_spec()
    scoring.mode = suite_pb2.MODE_LOGLIKELIHOOD
    taking.reuse.any_job = True
    warm.sampling.temperature = 0.5
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(models=("stub", "o3"))) as stub,
        OllamaServer() as ollama,
        running(nats, [stub_endpoint(stub.url), stub_endpoint(ollama.url, "ollama", name="local")]),
    ):
        await until(lambda: has_state(rig, State.STATE_REACHABLE))
        scoring.endpoint = "local"
        refused = [(await rig.plan(spec)).error for spec in (scoring, taking)]
        warm.model = "o3"
        refused.append((await rig.plan(warm)).error)
    assert refused[0].startswith("local does not return log-likelihoods of given texts. Set mode to generate")
    assert refused[1].startswith("stub does not report which weights serve stub")
    assert refused[2] == "o3 does not take temperature. Leave it out of the job's parameters."
    assert stub.records == ollama.records == []


async def test_a_plan_for_an_unknown_model_names_near_ones(nats: NatsServer) -> None:
    behaviour = Behaviour(models=("mistral:latest", "llama3.2:3b"))
    async with (
        open_rig(nats) as rig,
        OllamaServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url, "ollama")]),
    ):
        await until(lambda: has_state(rig, State.STATE_REACHABLE))
        plan = await rig.plan(suite_spec("mistrall:latest"))
        tagless = await rig.plan(suite_spec("mistral"))
    assert plan.error == (
        "stub does not have model mistrall:latest. Run `ollama pull mistrall:latest` where it runs. "
        "Did you mean mistral:latest?"
    )
    assert tagless.error == ""


async def test_a_model_that_is_too_large_is_refused_before_any_call(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OllamaServer() as stub,
        running(nats, [stub_endpoint(stub.url, "ollama", max_model_b=4.0)]),
    ):
        await until(lambda: has_state(rig, State.STATE_REACHABLE))
        plan = await rig.plan(suite_spec())
        await rig.release_items(await rig.job(), 4)
        fault = await rig.fault()
        assert stub.records == []
    sentence = "stub has 7.6 billion parameters; stub takes at most 4. Choose a smaller model or raise max_model_b."
    assert plan.error == fault.reason == sentence


async def test_a_plan_over_data_that_is_missing_says_so(nats: NatsServer, tmp_path: Path) -> None:
    (tmp_path / "nyu-mll" / "glue").mkdir(parents=True)
    catalogue = Catalogue(tmp_path)
    async with (
        open_rig(nats) as rig,
        OpenAIServer() as stub,
        running(nats, [stub_endpoint(stub.url)], catalogue=catalogue),
    ):
        plan = await rig.plan(suite_spec(suite="glue", tasks=["sst2"]))
    assert plan.error.startswith("Failed to load GLUE dataset: ")


async def test_a_plan_for_an_endpoint_of_another_evaluator_is_made_here(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):
        spec = suite_spec("whatever")
        spec.endpoint = "elsewhere"
        plan = await rig.plan(spec)
        assert plan.error == ""
        assert plan.receipt.endpoint_kind == ""
        # Once somebody has announced it, the receipt is the same whoever plans.
        model = endpoint_pb2.Model(model="whatever", digest="sha256:1")
        elsewhere = endpoint_pb2.Endpoint(
            endpoint="elsewhere", kind="ollama", server="Ollama 1", concurrency=3, models=[model], max_model_b=4
        )
        elsewhere.refreshed_at.GetCurrentTime()
        await rig.bus.announce(evaluator_pb2.Evaluator(evaluator="other", endpoints=[elsewhere]))
        receipt = (await rig.plan(spec)).receipt
        assert (receipt.endpoint_kind, receipt.server, receipt.concurrency) == ("ollama", "Ollama 1", 3)
        assert receipt.model_digest == "sha256:1"
        spec.model = "whatevr"
        assert "Did you mean whatever?" in (await rig.plan(spec)).error


async def test_planning_does_not_wait_behind_a_full_endpoint(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(latency_s=3600)) as stub,
        running(nats, [stub_endpoint(stub.url)], settings(grace_s=0.0)),
    ):
        await rig.release_items(await rig.job(), 64)
        await until(lambda: stub.in_flight == 8)
        assert (await rig.plan(suite_spec())).error == ""
