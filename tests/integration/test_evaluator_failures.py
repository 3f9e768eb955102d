"""What goes wrong with providers and jobs, and what the job's owner is told."""

from __future__ import annotations

import asyncio
import time
from collections import deque

import pytest
from nats.js.errors import APIError

from deploy.local.ports import free_port
from services.bus import JOBS, KIND_FAULT, KIND_ITEMS, JobHeaders, job_key, kv_subject
from services.evaluator.endpoints.kinds import OPENAI_URL
from tests.integration.evaluator_rig import Link, open_rig, prompt_answers, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import item_result_pb2, job_pb2

INFRASTRUCTURE = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR


async def test_cancel_ends_model_calls_and_begins_no_more(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub, running(nats, [stub_endpoint(stub.url)]):

        def answer(prompt: str) -> str:
            if len(stub.records) > 20:
                stub.behaviour.latency_s = 3600
            return "no answer"

        stub.behaviour.answer = answer
        job_id = await rig.job()
        await rig.release_items(job_id, 200)
        await until(lambda: len(stub.records) > 20 and stub.in_flight == 8 and stub.behaviour.latency_s)
        await rig.job(job_id, state=job_pb2.Job.STATE_CANCELLED)
        await until(lambda: stub.in_flight == 0)
        await rig.until_acknowledged()
        assert 0 < stub.aborted <= 8  # Calls in flight were ended, not waited for.
        assert len(stub.records) <= 20 + 2 * 8


async def test_cancel_leaves_other_jobs_running(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(latency_s=0.05)) as stub,
        running(nats, [stub_endpoint(stub.url)]),
    ):
        first, second = await rig.job(), await rig.job()
        await rig.release_items(first, 64)
        await rig.release_items(second, 64)
        await until(lambda: len(stub.records) > 10)
        await rig.job(first, state=job_pb2.Job.STATE_CANCELLED)
        await rig.until_acknowledged()
        done = [s for s in await rig.stored(KIND_ITEMS) if s.batch.job_id == second]
        assert sum(s.headers.items for s in done) == 64


async def test_a_cancel_that_the_bucket_refuses_ends_nothing(nats: NatsServer) -> None:
    """A stale scheduler's write: subscribers hear it, but it is not stored."""
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(latency_s=0.1)) as stub,
        running(nats, [stub_endpoint(stub.url)]),
    ):
        job_id = await rig.job()
        await rig.release_items(job_id, 160)
        await until(lambda: len(stub.records) > 20)
        stale = {"Nats-Expected-Last-Subject-Sequence": "999999"}
        headers = JobHeaders(job_pb2.Job.STATE_CANCELLED, 1).encode() | stale
        with pytest.raises(APIError):
            await rig.bus.js.publish(kv_subject(JOBS, job_key(job_id)), b"", headers=headers)
        await rig.until_acknowledged()
        assert len(stub.records) == 160
        assert stub.aborted == 0


async def test_a_cancel_that_came_while_nats_was_away_is_not_missed(nats: NatsServer) -> None:
    """The message is lost with the connection; the job's state is read again after it is back."""
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(latency_s=60)) as stub,
        Link(nats) as link,
        running(nats, [stub_endpoint(stub.url)], settings(ack_wait_s=30), url=link.url),
    ):
        job_id = await rig.job()
        await rig.release_items(job_id, 8)
        await until(lambda: stub.in_flight == 8)
        link.cut()
        await rig.job(job_id, state=job_pb2.Job.STATE_CANCELLED)
        await asyncio.sleep(0.3)
        assert stub.in_flight == 8
        link.mend()
        await until(lambda: stub.in_flight == 0)


async def test_a_wrong_key_fails_the_job_at_once_with_the_remedy(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer(Behaviour(api_key="right")) as stub:
        endpoint = stub_endpoint(stub.url, api_key_env="STUB_KEY", api_key="wrong")
        async with running(nats, [endpoint]):
            await rig.release_items(await rig.job(), 100)
            fault = await rig.fault()
            await rig.until_acknowledged()
            assert fault.reason.startswith("stub refused the key (")
            assert fault.reason.endswith("). Set STUB_KEY where the evaluator runs and restart it.")
            assert len(stub.records) <= 16
            assert len(await rig.stored(KIND_FAULT)) == 1
            assert await rig.items() == []


async def test_a_missing_key_fails_the_job_without_a_call(nats: NatsServer) -> None:
    endpoint = stub_endpoint(OPENAI_URL, name="openai", api_key_env="OPENAI_API_KEY")
    async with open_rig(nats) as rig, running(nats, [endpoint]):
        await rig.release(rig.unit(await rig.job(), 0, 0, 8, endpoint="openai"), endpoint="openai")
        assert (await rig.fault()).reason == "AI provider error: API key not configured for OpenAI"


async def test_an_unknown_model_fails_the_job_and_is_named(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OllamaServer() as stub, running(nats, [stub_endpoint(stub.url, "ollama")]):
        stub.behaviour.always = Fault("404", message="model 'llama9:1b' not found")
        await rig.release(rig.unit(await rig.job(), 0, 0, 8, model="llama9:1b"))
        assert (await rig.fault()).reason == (
            "stub does not have model llama9:1b. Run `ollama pull llama9:1b` where it runs."
        )


async def test_a_provider_that_is_down_fails_the_job_within_its_patience(nats: NatsServer) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    async with open_rig(nats) as rig, running(nats, [stub_endpoint(url)], settings(first_outage_s=3.0)):
        started = time.monotonic()
        await rig.release_items(await rig.job(), 64)
        fault = await rig.fault()
        took = time.monotonic() - started
        await rig.until_acknowledged()
    assert fault.reason.startswith(f"stub does not answer at {url[7:-3]}.")
    assert took > 2.5


async def test_a_provider_that_only_fails_fails_the_job(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OpenAIServer(Behaviour(always=Fault("500", message="out of memory"))) as stub,
        running(nats, [stub_endpoint(stub.url)]),
    ):
        await rig.release_items(await rig.job(), 32)
        assert (await rig.fault()).reason == (
            "stub failed with status 500: out of memory. Check its log or status page, then retry."
        )
        assert await rig.items() == []


@pytest.mark.stack
async def test_an_outage_after_a_success_is_waited_out(nats: NatsServer) -> None:
    """Longer than the patience before a first success, shorter than the one after: every item is answered."""
    port = free_port()
    stub = OpenAIServer(Behaviour(latency_s=0.02))
    await stub.start(port)
    try:
        async with (
            open_rig(nats) as rig,
            running(nats, [stub_endpoint(stub.url)], settings(first_outage_s=1.0, outage_s=30.0)),
        ):
            await rig.release_items(await rig.job(), 200)
            await until(lambda: len(stub.records) > 50)
            await stub.stop()
            await asyncio.sleep(3)
            await stub.start(port)
            await rig.until_acknowledged()
            items = await rig.items()
            assert len({item.position for item in items}) == 200
            assert all(item.outcome != INFRASTRUCTURE for item in items)
    finally:
        await stub.stop()


async def test_a_lasting_outage_fails_the_job_and_keeps_what_was_answered(nats: NatsServer) -> None:
    stub = OpenAIServer(Behaviour(latency_s=0.02))
    await stub.start(free_port())
    async with open_rig(nats) as rig, running(nats, [stub_endpoint(stub.url)], settings(outage_s=2.0)):
        await rig.release_items(await rig.job(), 200)
        await until(lambda: len(stub.records) > 50)
        await stub.stop()
        fault = await rig.fault()
        await rig.until_acknowledged()
        assert fault.reason.startswith("stub does not answer at")
        items = await rig.items()
        assert len(items) >= 40
        assert all(item.outcome != INFRASTRUCTURE for item in items)


async def test_a_burst_of_faults_costs_tries_and_no_items(nats: NatsServer) -> None:
    kinds = ("500", "reset", "truncated", "empty", "408", "503")
    behaviour = Behaviour(faults=deque(Fault(kind) for kind in kinds * 3))
    async with open_rig(nats) as rig, OpenAIServer(behaviour) as stub, running(nats, [stub_endpoint(stub.url)]):
        await rig.release_items(await rig.job(), 64)
        await rig.until_acknowledged()
        items = await rig.items()
        assert len(items) == 64
        assert all(item.outcome != INFRASTRUCTURE for item in items)
        assert sum(item.calls for item in items) == len(stub.records) == 64 + 18


async def test_an_item_that_never_works_becomes_an_error_and_is_not_scored(nats: NatsServer) -> None:
    """A refusal that is no outage: status 400 for one prompt alone."""
    answers: dict[str, str | Fault] = dict(prompt_answers())
    prompt = list(answers)[5]
    answers[prompt] = Fault("400", message="the prompt holds a strange character")
    behaviour = Behaviour(answer=answers.__getitem__)
    async with open_rig(nats) as rig, OpenAIServer(behaviour) as stub, running(nats, [stub_endpoint(stub.url)]):
        await rig.release_items(await rig.job(), 16)
        await rig.until_acknowledged()
        wrong = [item for item in await rig.items() if item.outcome == INFRASTRUCTURE]
        assert [item.position for item in wrong] == [5]
        assert wrong[0].error == (
            "stub refused a call with status 400: the prompt holds a strange character. Correct the cause, then retry."
        )
        assert not wrong[0].statistics
        assert prompt in wrong[0].prompt
        assert sum(stored.headers.errors for stored in await rig.stored(KIND_ITEMS)) == 1


async def test_calls_that_are_all_refused_fail_the_job(nats: NatsServer) -> None:
    behaviour = Behaviour(always=Fault("400", message="temperature is not supported"))
    async with open_rig(nats) as rig, OpenAIServer(behaviour) as stub, running(nats, [stub_endpoint(stub.url)]):
        await rig.release_items(await rig.job(), 64)
        assert (await rig.fault()).reason == (
            "stub refused a call with status 400: temperature is not supported. Correct the cause, then retry."
        )
        assert len(stub.records) <= 24


async def test_a_rate_limit_is_waited_for_as_long_as_it_asks(nats: NatsServer) -> None:
    behaviour = Behaviour(faults=deque([Fault("429", retry_after="4")]))
    async with (
        open_rig(nats) as rig,
        OpenAIServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url, concurrency=2)]),
    ):
        await rig.release_items(await rig.job(), 16)
        await rig.until_acknowledged()
        times = [record.at for record in stub.records]
        assert len(times) == 17
        # At most the call that was in flight beside the refused one falls into the pause.
        assert sum(at < times[0] + 3.99 for at in times[1:]) <= 1
        items = await rig.items()
        assert sorted(item.calls for item in items)[-1] == 2
        assert all(item.latency_ms < 3500 for item in items)  # Waiting is not the model's time.


async def test_used_up_credit_fails_the_job_instead_of_waiting(nats: NatsServer) -> None:
    behaviour = Behaviour(always=Fault("429", message="You exceeded your current quota", code="insufficient_quota"))
    async with open_rig(nats) as rig, OpenAIServer(behaviour) as stub, running(nats, [stub_endpoint(stub.url)]):
        await rig.release_items(await rig.job(), 8)
        assert "quota is used up" in (await rig.fault()).reason


async def test_a_hanging_call_ends_at_its_time_limit_and_is_tried_again(nats: NatsServer) -> None:
    behaviour = Behaviour(faults=deque([Fault("hang")]))
    async with (
        open_rig(nats) as rig,
        OpenAIServer(behaviour) as stub,
        running(nats, [stub_endpoint(stub.url, timeout_s=1.0)]),
    ):
        await rig.release_items(await rig.job(), 8)
        await rig.until_acknowledged()
        items = await rig.items()
        assert len(items) == 8
        assert all(item.outcome != INFRASTRUCTURE for item in items)


async def test_a_requests_per_minute_limit_spaces_the_calls(nats: NatsServer) -> None:
    async with (
        open_rig(nats) as rig,
        OpenAIServer() as stub,
        running(nats, [stub_endpoint(stub.url, requests_per_minute=300)]),
    ):
        await rig.release_items(await rig.job(), 16)
        await rig.until_acknowledged()
        # Three seconds, less what the first call may have been late.
        assert stub.records[-1].at - stub.records[0].at > 1.5


async def test_a_full_results_stream_is_waited_for_without_losing_the_unit(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, OpenAIServer() as stub:
        config = (await rig.bus.js.stream_info("RESULTS")).config
        config.max_bytes = 1
        await rig.bus.js.update_stream(config)
        async with running(nats, [stub_endpoint(stub.url)]):
            await rig.release_items(await rig.job(), 8)
            await until(lambda: len(stub.records) == 8)
            await asyncio.sleep(4)  # Longer than the acknowledgement time.
            assert await rig.work_left() == 1
            config.max_bytes = 1024 * 1024
            await rig.bus.js.update_stream(config)
            await rig.until_acknowledged()
            assert len(await rig.items()) == 8
            assert len(stub.records) == 8
