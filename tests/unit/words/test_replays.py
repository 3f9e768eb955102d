"""What a replay asks."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.words import replays
from touchstone.v1 import job_pb2


def job(**fields: object) -> job_pb2.Job:
    spec = job_pb2.JobSpec(endpoint="e", model="m", sampling=job_pb2.Sampling(temperature=0.5))
    spec.suite.CopyFrom(job_pb2.SuiteWork(suite="mmlu", shots=5, seed=7))
    spec.MergeFrom(job_pb2.JobSpec(**fields))  # type: ignore[arg-type]
    return job_pb2.Job(job_id="j", spec=spec, plan=[job_pb2.TaskPlan(task=f"t{number}") for number in range(4)])


def test_everything_that_is_asked_is_as_before_and_nothing_else() -> None:
    source = job(
        budget_usd=2, schedule_id="s", webhook_url="http://x", labels={"a": "b"}, priority=3, provider_batch=True
    )
    source.spec.reuse.any_job = True
    source.spec.judges.add(model="judge")
    made = replays.spec_of(source, 10)

    assert (made.replays_job_id, made.suite.limit, made.budget_usd) == ("j", 3, 2)
    assert (made.model, made.sampling, made.suite.shots, made.suite.seed) == ("m", source.spec.sampling, 5, 7)
    cleared = ("schedule_id", "webhook_url", "labels", "priority", "provider_batch", "reuse", "judges")
    assert not {descriptor.name for descriptor, _ in made.ListFields()} & {*cleared}
    replays.check(made, source)


@pytest.mark.parametrize(("limit", "items", "asked"), [(0, 8, 2), (1, 8, 1), (50, 1000, 50), (0, 1, 1)])
def test_it_asks_no_more_items_than_the_job(limit: int, items: int, asked: int) -> None:
    source = job()
    source.spec.suite.limit = limit
    assert replays.spec_of(source, items).suite.limit == asked


def test_rows_of_a_dataset_are_replayed_too() -> None:
    source = job(dataset=job_pb2.DatasetWork(dataset_id="ds_1"))
    del source.plan[1:]
    made = replays.spec_of(source, 30)
    assert made.dataset.limit == 30
    replays.check(made, source)


def test_what_would_ask_something_else_is_refused() -> None:
    source = job()
    other = replays.spec_of(source)
    other.sampling.temperature = 1
    copy = replays.spec_of(source)
    copy.reuse.job_id = "j"
    watch = job(watching=job_pb2.Watching(reference_job_id="first"))
    # Or the scheduler would refuse that before it could say which job to replay.
    assert not replays.spec_of(watch).HasField("watching")
    of_replay, judge = job(replays_job_id="first"), job(judging=job_pb2.Judging(job_id="x"))

    for made, of, said in (
        (other, source, "asks as job j did"),
        (copy, source, "asks again"),
        (replays.spec_of(of_replay), of_replay, "Replay job first again"),
        (replays.spec_of(watch), watch, "is a run of a watch. Replay job first"),
        (replays.spec_of(judge), judge, "judge's job"),
    ):
        with pytest.raises(InvalidRequestError, match=said):
            replays.check(made, of)
