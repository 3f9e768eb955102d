"""The call that says what a decision found: one for each decision, with the job that ended last."""

from __future__ import annotations

import json

from services.errors import NotFoundError
from tests.unit.scheduler.fakes import ALICE
from tests.unit.scheduler.webhook_fakes import Calls, ended
from touchstone.v1 import decision_pb2, job_pb2

URL = "https://hooks.example.com/a"


def job(job_id: str, model: str) -> job_pb2.Job:
    made = job_pb2.Job(job_id=job_id, owner="alice")
    made.spec.model, made.spec.endpoint, made.spec.schedule_id = model, "e", "s1"
    made.spec.deciding.error, made.spec.deciding.margin = 0.05, 0.02
    return made


def decision() -> decision_pb2.Decision:
    return decision_pb2.Decision(
        decision_id="j0",
        baseline=job("j0", "old"),
        candidate=job("j1", "new"),
        verdict=job_pb2.DECISION_VERDICT_BETTER,
        decided_at=96,
        pairs=104,
        items_total=600,
        difference=0.31,
        low=0.12,
        high=0.5,
        saved=decision_pb2.DecisionSavings(items=992, tokens=12_345, seconds=130),
    )


def end(job_id: str, attempt: int = 1) -> job_pb2.JobEvent:
    event = ended("cancelled", event_id=f"{job_id}/{attempt}")
    event.job.job_id, event.job.attempt = job_id, attempt
    event.job.spec.deciding.error = 0.05
    return event


async def test_the_job_that_ended_last_tells_what_was_found() -> None:
    calls = Calls()
    calls.decisions["j1"] = decision()
    await calls.desk.create(ALICE, URL, ["decision.ended"], 0)
    for _ in range(2):
        for job_id in ("j0", "j1"):
            await calls.fanout.take(end(job_id))
    await calls.settle()
    ((_, headers, body),) = calls.caller.calls
    told = json.loads(body)
    assert (headers["Touchstone-Event"], told["event"], told["job"]["job_id"]) == (*["decision.ended"] * 2, "j1")
    assert told["decision"] == {
        "decision_id": "j0",
        "schedule_id": "s1",
        "models": ["old@e", "new@e"],
        "verdict": "better",
        "words": "new@e is better than old@e.",
        "decided_at": 96,
        "pairs": 104,
        "items_total": 600,
        "difference": 0.31,
        "interval": [0.12, 0.5],
        "error": 0.05,
        "margin": 0.02,
        "saved": {"items": 992, "tokens": 12_345, "cost_usd": None, "seconds": 130.0},
    }


async def test_a_decision_without_a_verdict_says_so() -> None:
    calls = Calls()
    calls.decisions["j1"] = decision_pb2.Decision(
        decision_id="j0", baseline=job("j0", "old"), candidate=job("j1", "new")
    )
    await calls.desk.create(ALICE, URL, ["decision.ended"], 0)
    await calls.fanout.take(end("j1"))
    await calls.settle()
    told = json.loads(calls.caller.calls[0][2])["decision"]
    assert (told["verdict"], told["interval"], told["decided_at"]) == (None, None, None)
    assert told["words"] == "It is not decided whether new@e is better than old@e."


async def test_nobody_asks_where_nobody_listens_or_a_job_runs_again() -> None:
    calls = Calls()

    async def gone(job_id: str) -> decision_pb2.Decision | None:
        asked.append(job_id)
        raise NotFoundError("Decision not found")

    asked: list[str] = []
    calls.decided = gone  # type: ignore[method-assign]
    calls.lead()
    hook = await calls.desk.create(ALICE, URL, ["job.cancelled"], 0)
    await calls.fanout.take(end("j1"))
    assert asked == []
    await calls.desk.delete(ALICE, hook.webhook.webhook_id)
    await calls.desk.create(ALICE, URL, [], 0)
    await calls.fanout.take(end("j1", attempt=2))
    assert asked == []
    await calls.fanout.take(end("j1"))
    await calls.settle()
    # A decision of which a job was deleted meanwhile is not found; the end of this job is told.
    assert asked == ["j1"]
    assert [headers["Touchstone-Event"] for _, headers, _ in calls.caller.calls] == ["job.cancelled"] * 2
