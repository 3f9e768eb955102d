"""Jobs that take stored answers: what they may take, where their units go, what must be the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.words.jobs import is_rescore
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan, spec
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, suite_pb2, unit_pb2

TRUNCATED = item_result_pb2.OUTCOME_OUTPUT_TRUNCATED


async def finished(world: World, made: unit_pb2.Plan | None = None) -> str:
    job = await world.create()
    await world.planned(job, made)
    await world.run_all(job)
    assert world.state(job) == "completed"
    return job


def taking(world: World, source: str, *rerun: item_result_pb2.Outcome) -> job_pb2.JobSpec:
    copied = job_pb2.JobSpec()
    copied.CopyFrom(world.desk.get(source).spec)
    copied.reuse.CopyFrom(job_pb2.Reuse(job_id=source, rerun=rerun))
    return copied


async def create(world: World, wanted: job_pb2.JobSpec) -> str:
    job = await world.desk.create(ALICE, "", wanted)
    await world.settle()
    return job.job_id


def with_digest(digest: str) -> unit_pb2.Plan:
    made = plan()
    made.receipt.MergeFrom(job_pb2.Receipt(model_digest=digest, endpoint_kind="openai", software="1"))
    return made


async def test_a_rescore_runs_without_its_endpoint_and_keeps_the_receipt_of_who_answered(world: World) -> None:
    source = await finished(world, with_digest("sha256:a"))
    world.fleet.hear(evaluator(endpoint="another"), world.time)
    job = await create(world, taking(world, source))
    assert is_rescore(world.desk.get(job).spec)
    await world.planned(job, unit_pb2.Plan(tasks=plan().tasks, receipt=job_pb2.Receipt(software="2")))
    assert world.work.offered, "its units go to any evaluator"
    assert {unit.model_digest for unit in world.work.offered.values()} == {"sha256:a"}
    await world.run_all(job)
    receipt = world.desk.get(job).receipt
    assert (receipt.model_digest, receipt.configuration, receipt.software) == ("sha256:a", "c", "2")
    assert receipt.source_job == source
    assert world.state(job) == "completed"


async def test_a_rerun_goes_to_its_endpoint_with_the_changed_limit(world: World) -> None:
    source = await finished(world)
    wanted = taking(world, source, TRUNCATED)
    wanted.sampling.max_tokens = 512
    job = await create(world, wanted)
    await world.planned(job)
    await world.run_all(job)
    assert world.state(job) == "completed"


DIFFERENCES: list[tuple[str, Callable[[job_pb2.JobSpec], object]]] = [
    ("model", lambda s: setattr(s, "model", "other")),
    ("endpoint", lambda s: setattr(s, "endpoint", "other")),
    ("mode", lambda s: setattr(s, "mode", suite_pb2.MODE_LOGLIKELIHOOD)),
    ("suite", lambda s: setattr(s.suite, "limit", 5)),
    ("suite", lambda s: setattr(s.suite, "repeats", 2)),
    ("sampling", lambda s: setattr(s.sampling, "temperature", 0.5)),
    ("sampling", lambda s: setattr(s.sampling, "max_tokens", 512)),
]


@pytest.mark.parametrize(("field", "change"), DIFFERENCES)
async def test_answers_stand_for_the_same_work_only(
    world: World, field: str, change: Callable[[job_pb2.JobSpec], object]
) -> None:
    wanted = taking(world, await finished(world))
    change(wanted)
    with pytest.raises(InvalidRequestError) as refused:
        await create(world, wanted)
    assert refused.value.field == f"spec.{field}"
    assert f"{field} differs from that of job" in refused.value.message


async def test_one_answer_an_item_is_the_same_as_none_said_and_tasks_have_no_order(world: World) -> None:
    source = await world.desk.create(
        ALICE,
        "",
        job_pb2.JobSpec(endpoint="stub", model="m", suite=job_pb2.SuiteWork(suite="demo", tasks=["one", "two"])),
    )
    await world.settle()
    await world.planned(source.job_id)
    await world.run_all(source.job_id)
    wanted = taking(world, source.job_id)
    wanted.suite.repeats = 1
    del wanted.suite.tasks[:]
    wanted.suite.tasks.extend(["two", "one"])
    made = world.desk.get(await create(world, wanted))
    assert made.receipt.source_job == made.spec.reuse.job_id == source.job_id


async def test_a_source_must_exist_be_finished_and_have_begun(world: World) -> None:
    unfinished = await world.create()
    with pytest.raises(ConflictError, match="is not finished"):
        await create(world, taking(world, unfinished))
    await world.desk.cancel(ALICE, unfinished)
    with pytest.raises(ConflictError, match="ended before its first item"):
        await create(world, taking(world, unfinished))
    unknown = spec()
    unknown.reuse.job_id = "11111111-1111-1111-1111-111111111111"
    with pytest.raises(NotFoundError):
        await create(world, unknown)


async def test_a_source_that_only_results_remembers_will_do(world: World) -> None:
    source = await finished(world)
    world.results.old[source] = world.desk.get(source)
    wanted = taking(world, source)
    del world.registry.jobs[source]
    made = world.desk.get(await create(world, wanted))
    assert made.receipt.source_job == made.spec.reuse.job_id == source


@pytest.mark.parametrize(
    ("reuse", "field"),
    [
        (job_pb2.Reuse(rerun=[TRUNCATED]), "spec.reuse.job_id"),
        (job_pb2.Reuse(job_id="x", any_job=True), "spec.reuse.any_job"),
        (job_pb2.Reuse(job_id="x", rerun=[item_result_pb2.OUTCOME_ANSWERED]), "spec.reuse.rerun"),
    ],
)
async def test_a_wrong_reuse_is_refused_with_its_field(world: World, reuse: job_pb2.Reuse, field: str) -> None:
    wanted = spec()
    wanted.reuse.CopyFrom(reuse)
    world.results.old["x"] = job_pb2.Job(job_id="x")
    with pytest.raises(InvalidRequestError) as refused:
        await create(world, wanted)
    assert refused.value.field == field


@pytest.mark.parametrize("change", ["item_set", "prompt_hash", "version"])
async def test_changed_data_or_prompts_end_a_rescore_before_its_first_item(world: World, change: str) -> None:
    source = await finished(world)
    job = await create(world, taking(world, source))
    made = plan()
    setattr(made.tasks[0], change, "other")
    await world.planned(job, made)
    assert world.state(job) == "failed"
    assert f"have changed since job {source} ran" in world.desk.get(job).reason


async def test_a_changed_scorer_does_not_end_it(world: World) -> None:
    source = await finished(world)
    job = await create(world, taking(world, source))
    made = plan()
    made.tasks[0].scorer_version = "new"
    await world.planned(job, made)
    assert world.state(job) == "running"
    assert world.desk.get(job).plan[0].scorer_version == "new"


async def test_other_weights_under_the_same_name_mix_with_no_stored_answer(world: World) -> None:
    source = await finished(world, with_digest("sha256:a"))
    rerun = await create(world, taking(world, source, TRUNCATED))
    await world.planned(rerun, with_digest("sha256:b"))
    assert "The weights of m have changed" in world.desk.get(rerun).reason
    again = await world.create()
    await world.planned(again, with_digest("sha256:a"))
    await world.desk.cancel(ALICE, again)
    await world.desk.retry(ALICE, again)
    await world.settle()
    await world.planned(again, with_digest("sha256:b"))
    assert "since the first attempt" in world.desk.get(again).reason


@pytest.mark.parametrize("limit", ["max_tokens", "context_length"])
async def test_a_rerun_has_no_less_room_than_the_answers_that_it_takes(world: World, limit: str) -> None:
    served = evaluator()
    served.endpoints[0].kind = "ollama"
    world.fleet.hear(served, world.time)
    first = spec()
    setattr(first.sampling, limit, 512)
    source = await create(world, first)
    await world.planned(source)
    await world.run_all(source)
    wanted = taking(world, source, TRUNCATED)
    setattr(wanted.sampling, limit, 511)
    with pytest.raises(InvalidRequestError, match="must be 512 or more, as in job") as refused:
        await create(world, wanted)
    assert refused.value.field == f"spec.sampling.{limit}"
    wanted.sampling.ClearField(limit)
    await create(world, wanted)


def asked_with(parameters: str) -> unit_pb2.Plan:
    made = plan()
    made.receipt.MergeFrom(job_pb2.Receipt(parameters=parameters))
    return made


async def test_answers_asked_with_other_parameters_are_not_mixed(world: World) -> None:
    source = await finished(world, asked_with('{"max_tokens":64,"temperature":0}'))
    rerun = await create(world, taking(world, source, TRUNCATED))
    await world.planned(rerun, asked_with('{"max_tokens":512,"temperature":0}'))
    assert world.state(rerun) == "running", "limits may differ"
    await world.desk.cancel(ALICE, rerun)
    await world.desk.retry(ALICE, rerun)
    await world.settle()
    await world.planned(rerun, asked_with('{"max_tokens":512}'))
    assert world.state(rerun) == "failed"
    assert "The parameters for m have changed" in world.desk.get(rerun).reason


async def test_a_rescore_with_too_few_stored_answers_says_what_to_do(world: World) -> None:
    source = await finished(world)
    job = await create(world, taking(world, source))
    await world.planned(job)
    world.results.errors = 11
    await world.run_all(job)
    assert world.state(job) == "failed"
    reason = world.desk.get(job).reason
    assert reason.startswith("11 of 200 items have no stored answer, which is more than 5%.")
    assert f"Retry job {source}" in reason


async def test_answers_of_any_job_need_a_digest(world: World) -> None:
    wanted = spec()
    wanted.reuse.any_job = True
    with pytest.raises(InvalidRequestError, match="does not report which weights serve m") as refused:
        await create(world, wanted)
    assert refused.value.field == "spec.reuse.any_job"
    accepting = spec()
    accepting.reuse.without_digest = True
    with pytest.raises(InvalidRequestError, match=r"reuse.without_digest needs reuse.any_job") as refused:
        await create(world, accepting)
    assert refused.value.field == "spec.reuse.without_digest"
    accepting.reuse.any_job = True
    await create(world, accepting)
    announced = evaluator()
    announced.endpoints[0].models[0].digest = "sha256:a"
    world.fleet.hear(announced, world.time)
    await create(world, wanted)


async def test_a_job_whose_texts_were_dropped_is_no_source(world: World) -> None:
    source = await finished(world)
    world.results.results[source] = metric_pb2.JobResult(texts_dropped="2026-11-19T08:00:00Z")
    for rerun in ((), (TRUNCATED,)):
        with pytest.raises(ConflictError, match=r"dropped on 2026-11-19.*Start a new job"):
            await create(world, taking(world, source, *rerun))
    world.results.down = True
    assert world.state(await create(world, taking(world, source))) == "planning"


async def test_a_rerun_of_outcomes_that_no_item_has_is_refused_with_what_there_is(world: World) -> None:
    """It would be a run of its own, with another configuration and not one call."""
    source = await finished(world)
    counts = metric_pb2.OutcomeCounts(answered=193, unparsed=7)
    measured = metric_pb2.JobResult(tasks=[metric_pb2.TaskResult(items=100)] * 2, outcomes=counts)
    world.results.results[source] = measured
    refused = item_result_pb2.OUTCOME_REFUSED
    with pytest.raises(InvalidRequestError) as said:
        await create(world, taking(world, source, refused, TRUNCATED))
    assert said.value.field == "spec.reuse.rerun"
    assert said.value.message == (
        f"No item of job {source} ended as refused or output_truncated, so there is nothing to run again. "
        "Its other outcomes: unparsed (7)."
    )
    await create(world, taking(world, source, item_result_pb2.OUTCOME_UNPARSED))
    measured.outcomes.Clear()
    with pytest.raises(InvalidRequestError, match="All its items were answered"):
        await create(world, taking(world, source, refused))
    measured.tasks[0].items = 99
    await create(world, taking(world, source, refused))
    measured.tasks[0].items, measured.outcomes.infrastructure_error = 100, 1
    await create(world, taking(world, source, refused))


async def test_while_results_is_silent_a_rerun_may_be_queued(world: World) -> None:
    source = await finished(world)
    world.results.results[source] = metric_pb2.JobResult(tasks=[metric_pb2.TaskResult(items=200)])
    world.results.down = True
    assert world.state(await create(world, taking(world, source, TRUNCATED))) == "planning"
