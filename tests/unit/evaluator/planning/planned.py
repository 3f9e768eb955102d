"""Plans over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.answers.scorers.choosing import NONE_PLUGGED
from services.evaluator.answers.scorers.scorer import Scorer
from services.evaluator.datasets.store import Shelf
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.items.task import Message
from services.evaluator.listing.identity import asked_with
from services.evaluator.planning.budget import MostCost
from services.evaluator.planning.datasets import Caller, plan
from tests.dataset_store import DATASET_ID, MemoryStore
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.endpoint_pb2 import Capabilities, Endpoint, Prices
from touchstone.v1.job_pb2 import DatasetWork, JobSpec, Sampling, TaskPlan
from touchstone.v1.scoring_pb2 import Scoring

PRICED = Prices(input=1.0, output=10.0, batch_share=0.5)


def spec(budget_usd: float = 0.0, **sampling: Any) -> JobSpec:
    work = DatasetWork(dataset_id=DATASET_ID)
    return JobSpec(endpoint="e", model="m", dataset=work, sampling=Sampling(**sampling), budget_usd=budget_usd)


def caller(
    asked: JobSpec,
    kind: str = "openai",
    known: Prices | None = PRICED,
    takes: Capabilities | None = None,
    baseline: str = "",
) -> Caller:
    cost = MostCost(asked, Endpoint(endpoint="e", kind=kind), known) if asked.budget_usd else None
    taken = takes or Capabilities()
    return Caller(lambda sampling: asked_with(asked, kind, taken, sampling=sampling), cost, baseline)


async def planned(
    rows: Sequence[DatasetRow],
    asked: JobSpec | None = None,
    by: Caller | None = None,
    scoring: Scoring | None = None,
    limit: int = 0,
    further: Sequence[Scoring] = (),
    plugged: Mapping[str, Scorer] = NONE_PLUGGED,
) -> TaskPlan:
    memory = MemoryStore()
    manifest = memory.add(rows, shard_rows=7)
    task = DatasetTask(manifest, scoring or Scoring(), limit, 0, Shelf(memory), plugged=plugged, further=further)
    asked = asked or spec()
    return await plan(asked, task, 32, by or caller(asked))


def most(asked: JobSpec, text: str = "ü" * 100, kind: str = "openai", known: Prices | None = PRICED) -> float:
    return MostCost(asked, Endpoint(kind=kind), known).written([Message("user", text)], asked.sampling)
