"""Finished runs on items of the test's choice, for comparisons."""

from __future__ import annotations

import random
from collections.abc import Sequence

from services.results.intake import writes
from services.results.storage.database import Connection
from tests.unit.results.builders import ANSWERED, answer, batch, event, job, plan, seal
from touchstone.v1 import item_result_pb2, job_pb2

Answers = Sequence[item_result_pb2.ItemResult]


def task(name: str, answers: Answers, *metrics: str, **fields: object) -> tuple[job_pb2.TaskPlan, Answers]:
    """A task as planned for these answers, with `fields` of the plan; the item set is that of the items' hashes."""
    planned = plan(name, len({one.item for one in answers}), *metrics)
    planned.version = planned.scorer_version = "1"
    planned.prompt_hash = "p1"
    planned.data.revision = "r1"
    planned.item_set = "+".join(sorted({one.item_hash for one in answers}))
    for field, value in fields.items():
        if field == "revision":
            planned.data.revision = str(value)
        else:
            setattr(planned, field, value)
    return planned, answers


def right_or_wrong(pattern: str) -> list[item_result_pb2.ItemResult]:
    """One item a character: "1" right, "0" wrong."""
    return [said(item, "yes" if mark == "1" else "no") for item, mark in enumerate(pattern)]


def said(
    item: int, prediction: str, reference: str = "yes", outcome: int = ANSWERED, **fields: object
) -> item_result_pb2.ItemResult:
    fields.setdefault("item_hash", f"h{item}")
    return answer(item, prediction, reference, outcome, **fields)


def share_right(share: float, items: int, seed: int) -> str:
    chance = random.Random(seed)
    return "".join("1" if chance.random() < share else "0" for _ in range(items))


def finished(
    connection: Connection,
    job_id: str,
    *tasks: tuple[job_pb2.TaskPlan, Answers],
    minute: int = 0,
    spec: job_pb2.JobSpec | None = None,
    concurrency: int = 4,
    **fields: object,
) -> job_pb2.Job:
    """Stored, sealed and completed. `fields` are those of builders.job; what `spec` says goes before."""
    fields.setdefault("item_set", "+".join(planned.item_set for planned, _ in tasks))
    made = job(job_id, *(planned for planned, _ in tasks), minute=minute, **fields)  # type: ignore[arg-type]
    made.receipt.concurrency = concurrency
    made.spec.MergeFrom(spec or job_pb2.JobSpec())
    writes.store_events(connection, [event(f"{minute:06d}-{job_id}", made)])
    writes.store_items(connection, [batch(job_id, planned.task, answers) for planned, answers in tasks])
    seal(connection, made, minute)
    done = job_pb2.Job()
    done.CopyFrom(made)
    done.state = job_pb2.Job.STATE_COMPLETED
    done.finished_at.CopyFrom(made.created_at)
    writes.store_events(connection, [event(f"{minute:06d}-{job_id}+", done, "completed")])
    return done
