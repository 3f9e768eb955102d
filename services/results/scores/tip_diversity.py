"""How much the tips in the answers of an experiment's job differ, by prompt.

Thousands of answers take a part of a second. So it is computed once, when the job is sealed, and the seal still has it
when the texts are dropped.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from services.experiments import candidates, grid
from services.results.statistics import scenario_means
from services.results.storage import text_retention
from services.results.storage.database import Connection, first_row, query
from services.words import chat
from touchstone.v1 import job_pb2, metric_pb2

_AT_ONCE = 1_000


def read(connection: Connection, job: job_pb2.Job) -> list[metric_pb2.TipDiversity]:
    """Of a job that has ended; nothing for one that belongs to no experiment."""
    if not job.spec.experiment_name:
        return []
    if text_retention.dropped_at(connection, job.job_id):
        return _sealed(connection, job.job_id)
    found: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows = connection.execute(query("scores/tips"), {"job_id": job.job_id})
    while some := rows.fetchmany(_AT_ONCE):
        for custom_id, response, tool_calls in some:
            cell = grid.cell_of(custom_id)
            answer = chat.answer_text(response, chat.read_calls(tool_calls)) if tool_calls else response
            value = candidates.diversity(candidates.read(answer).tips)
            if cell is not None and value is not None:
                found[cell.prompt][cell.scenario].append(value)
    return [_of_prompt(prompt, by_scenario) for prompt, by_scenario in found.items()]


def _of_prompt(prompt: str, by_scenario: dict[str, list[float]]) -> metric_pb2.TipDiversity:
    means = np.array([[sum(values) / len(values) for values in by_scenario.values()]])
    (mean,) = scenario_means.means(means)
    assert mean is not None
    return metric_pb2.TipDiversity(prompt=prompt, mean=mean.value, low=mean.low, high=mean.high, scenarios=mean.n)


def _sealed(connection: Connection, job_id: str) -> list[metric_pb2.TipDiversity]:
    row = first_row(connection, "SELECT result FROM seals WHERE job_id = $job_id", {"job_id": job_id})
    return [] if row is None else list(metric_pb2.JobResult.FromString(row[0]).tip_diversity)
