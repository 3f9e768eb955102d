"""A comparison of stored runs."""

from __future__ import annotations

import random

from tests.unit.results.builders import UNPARSED
from tests.unit.results.finished import said
from touchstone.v1 import comparison_pb2, item_result_pb2, metric_pb2

LABELS = ("no", "yes", "maybe")
Results = list[item_result_pb2.ItemResult]


def answers(seed: int, items: int, repeats: int, grouped: bool) -> Results:
    """The references are the same for every seed, the answers are not; every eighth is unreadable."""
    rng, truth = random.Random(seed), random.Random(0)
    made = []
    for item in range(items):
        reference, target = truth.choice(LABELS), truth.random() * 5
        for repeat in range(repeats):
            word = rng.choice([reference, reference, *LABELS])
            outcome = UNPARSED if rng.random() < 0.12 else 1
            right = float(outcome == 1 and word == reference)
            statistics = {
                "correct": right,
                "overlap": right or (rng.random() if outcome == 1 else 0.0),
                "question": float(item // 3),
                "value": target + rng.gauss(0, 1),
                "target": target,
            }
            passage = f"p{int((item // 3) ** 0.7)}" if grouped else ""
            one = said(item, word, reference, outcome, statistics=statistics, group=passage, repeat=repeat)
            one.position = item * repeats + repeat
            made.append(one)
    return made


def score_of(response: comparison_pb2.CompareResponse, job_id: str, metric: str = "score") -> metric_pb2.Metric:
    run = next(run for run in response.runs if run.job_id == job_id)
    return next(score for score in run.scores if score.metric == metric)
