"""A stored experiment: its rows, jobs of models, judges of these, and ratings, with only what differs spelled out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from services.experiments import grid, reading
from services.experiments.definition import Definition
from services.results.datasets import index
from services.results.experiments.preparing import source_of
from services.results.intake import writes
from services.results.judging import ratings
from services.results.storage.database import Connection
from services.words import rubrics
from tests.unit.experiments.definitions import small
from tests.unit.results.builders import ANSWERED, ERROR, START, UNPARSED, answer, batch, event, seal
from tests.unit.results.dataset_runs import TASK, dataset_job
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

NOW = datetime(2026, 11, 28, 12)
CRITERIA = ("relevance", "actionability", "tone")
Scores = Mapping[str, int]
"""Of each criterion of tip-v1, from 1 to 5."""


def all_of(score: int) -> Scores:
    return dict.fromkeys(CRITERIA, score)


class Made:
    """An experiment in a database. Its models are named by their jobs: "a" of job "a"."""

    def __init__(self, connection: Connection, minute: int = 0, **changes: Any) -> None:
        usual = {"prompts": ["p", "q"], "scenarios": {"set": "tips", "count": 2}}
        value = small(**usual | changes)
        value["prompts"] = [{"id": one, "template": "A tip for {{persona}}."} for one in value["prompts"]]
        self.connection = connection
        self.definition: Definition = reading.read(value)
        self.name = self.definition.name
        self.ids = [row["custom_id"] for row in grid.rows(self.definition)]
        self.dataset = self._dataset(f"ds_{self.name}", experiment=source_of(self.definition), minute=minute)

    def _dataset(self, dataset_id: str, minute: int = 0, **fields: Any) -> dataset_pb2.Dataset:
        dataset = dataset_pb2.Dataset(dataset_id=dataset_id, name=self.name, owner="root", rows=1, digest="d", **fields)
        dataset.uploaded_at.FromSeconds(int(START.timestamp()) + 60 * minute)
        index.add(self.connection, dataset_pb2.DatasetManifest(dataset=dataset), NOW)
        return dataset

    def started(
        self, job_id: str, dataset_id: str, minute: int, attempt: int = 1, model: str = "", **spec: Any
    ) -> job_pb2.Job:
        made = dataset_job(
            job_id, len(self.ids), model=model or job_id, endpoint="local", minute=minute, attempt=attempt
        )
        made.spec.dataset.dataset_id = dataset_id
        made.spec.MergeFrom(job_pb2.JobSpec(**spec))
        writes.store_events(self.connection, [event(f"{job_id}-{attempt}", made)])
        return made

    def job(
        self,
        job_id: str,
        answers: Mapping[int, str] | None = None,
        failed: frozenset[int] | set[int] = frozenset(),
        *,
        minute: int = 0,
        attempt: int = 1,
        model: str = "",
        sealed: bool = False,
        **fields: Any,
    ) -> job_pb2.Job:
        """A job with these answers by row: by default to all rows that did not fail."""
        texts = {row: f"answer {row}" for row in range(len(self.ids))} if answers is None else answers
        made = self.started(job_id, self.dataset.dataset_id, minute, attempt, model, experiment_name=self.name)
        items = [
            answer(
                row,
                outcome=ERROR if row in failed else ANSWERED,
                custom_id=self.ids[row],
                response=text,
                statistics={},
                **fields,
            )
            for row, text in texts.items()
        ]
        writes.store_items(self.connection, [batch(job_id, TASK, items, attempt)])
        if sealed:
            seal(self.connection, made)
        return made

    def judge(
        self,
        judge: str,
        judged: str,
        said: Mapping[int, Scores | list[Scores | None] | None],
        *,
        minute: int = 1,
        attempt: int = 1,
        number: int = 1,
        **spec: Any,
    ) -> None:
        """A job that judges: of each row the scores, or None where it failed; several in a list."""
        written = rubrics.written(self.definition.rubric)
        job_id = f"{judge}-{judged}-{number}"
        dataset = self._dataset(f"ds_{job_id}", judging=job_pb2.Judging(job_id=judged, rubric=written, attempt=attempt))
        self.started(job_id, dataset.dataset_id, minute, model=judge, **spec)
        items: list[item_result_pb2.ItemResult] = []
        for row, every in said.items():
            for count, scores in enumerate(every if isinstance(every, list) else [every], start=1):
                place = f"{TASK}/{row}/0" + (f"#{count}" if count > 1 else "")
                one = answer(
                    len(items), outcome=UNPARSED if scores is None else ANSWERED, custom_id=place, statistics={}
                )
                if scores is not None:
                    one.prediction = json.dumps(dict(scores))
                    one.statistics.update(rubrics.shares(self.definition.rubric, scores))
                items.append(one)
        writes.store_items(self.connection, [batch(job_id, TASK, items)])

    def rate(self, job_id: str, said: Mapping[int, Scores], rater: str = "ann", judge: str = "") -> None:
        given = [pb.Rating(task=TASK, item=row, scores=json.dumps(dict(scores))) for row, scores in said.items()]
        # That of the experiment.
        request = pb.RateAnswersRequest(job_id=job_id, ratings=given, judge=judge)
        ratings.rate(self.connection, request, rater, NOW)
