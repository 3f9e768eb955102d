"""The leaderboard of an experiment of 40,000 cells, as the results service computes it for each request."""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

from benchmarks import report
from benchmarks.report import Finding
from services.results.experiments import board
from services.results.judging import ratings
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file
from tests.unit.results.experiments.made import CRITERIA, Made
from touchstone.v1 import results_service_pb2 as pb

MODELS, PROMPTS, SCENARIOS = 10, 20, 200
RATED = 0.1
"""Of the answers, in the order drawn at random."""
LIMIT_MS = 200.0
_FAILING = 0.1
"""Of the judgements."""
_ROUNDS, _WARM_UP = 20, 2
_SOURCES = {
    "a judge": pb.GetExperimentRequest.SOURCE_JUDGE,
    "people": pb.GetExperimentRequest.SOURCE_PEOPLE,
    "both": pb.GetExperimentRequest.SOURCE_COMBINED,
}


def experiment_board(folder: Path) -> list[Finding]:
    """With the time to write the message, without REST."""
    connection = open_file(folder / "results.duckdb")
    try:
        name = _write(connection)
        cells = MODELS * PROMPTS * SCENARIOS
        return [
            report.at_most(
                f"leaderboard of {cells:,} cells by {by}, median", _median_ms(connection, name, source), "ms", LIMIT_MS
            )
            for by, source in _SOURCES.items()
        ]
    finally:
        connection.close()


def _write(connection: Connection) -> str:
    chance = random.Random(1)

    def scores(better: float) -> dict[str, int]:
        return {name: min(5, max(1, round(chance.gauss(2.5 + better, 1.2)))) for name in CRITERIA}

    made = Made(
        connection, prompts=[f"p{number}" for number in range(PROMPTS)], scenarios={"set": "tips", "count": SCENARIOS}
    )
    rows = range(PROMPTS * SCENARIOS)
    for number in range(MODELS):
        job, better = f"m{number}", number / MODELS
        made.job(job, minute=number, sealed=True)
        made.judge("j", job, {row: None if chance.random() < _FAILING else scores(better) for row in rows})
        order = [item for _, item, _ in ratings.in_order(connection, job)]
        made.rate(job, {row: scores(better) for row in order[: int(len(order) * RATED)]})
    connection.checkpoint()
    return made.name


def _median_ms(connection: Connection, name: str, source: int) -> float:
    request = pb.GetExperimentRequest(name=name, source=pb.GetExperimentRequest.Source.Name(source))
    took = []
    for _ in range(_WARM_UP + _ROUNDS):
        began = time.perf_counter()
        board.get_experiment(connection, request).SerializeToString()
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took[_WARM_UP:])
