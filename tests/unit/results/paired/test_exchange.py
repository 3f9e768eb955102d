"""The p-value of a suite is that of exchanged answers."""

from __future__ import annotations

import numpy as np

from services.results.paired.differences import suite_differences
from services.results.paired.pairs.difference import Terms
from services.results.paired.pairs.rows import ClusteredConfusion
from services.results.statistics.metric_values import Floats, Ints
from tests.unit.results.paired.drawn import PAIR, agrees, exchanged, of_rows
from tests.unit.results.paired_rows import labelled, mixed_task, scored


def test_the_suites_p_is_that_of_exchanged_answers_in_all_tasks() -> None:
    """Unlike tables with and without accuracy, more outcomes than can be enumerated, real numbers, clusters."""
    rng, draws = np.random.default_rng(3), 3_000
    groups, moved = [], np.zeros(draws)
    for n, metrics, a, b in (
        (700, ("matthews_correlation",), (0.55, 0.5), (0.995, 0.985)),
        (400, ("f1", "accuracy"), (0.9, 0.4), (0.85, 0.3)),
    ):
        references = (rng.random(n) < 0.69).astype(int)
        said = [(rng.random(n) < np.where(references, *each)).astype(int) for each in (a, b)]
        groups.append([labelled(references, np.stack(said, axis=1), metrics, task=metrics[0])])

        def score(answers: Ints, references: Ints = references, metrics: tuple[str, ...] = metrics) -> Floats:
            values = [of_rows(metric, references, answers) for metric in metrics]
            return np.asarray(np.mean(values, axis=0))

        moved += exchanged(rng, draws, score, *said)
    scores = np.clip(rng.random((200, 2)) + np.array([0.05, 0]), 0, 1)
    groups.append([scored(scores)])
    moved += exchanged(rng, draws, lambda answers: np.asarray(answers.mean(axis=1)), *scores.T)
    task = mixed_task(rng, "clustered table", models=2)
    table = task.metrics["f1a"]
    assert isinstance(table, ClusteredConfusion)
    groups.append([task])
    swap = rng.random((draws, table.shares.shape[1])) < 0.5
    one, other = table.shares

    def f1a(totals: Floats) -> Floats:
        no_yes, yes_no, yes_yes, unread = totals[:, 1:].T
        return np.asarray(2 * yes_yes / (2 * yes_yes + no_yes + yes_no + unread))

    moved += f1a(swap @ one + ~swap @ other) - f1a(~swap @ one + swap @ other)
    agrees(suite_differences(groups, PAIR, Terms())[0], moved / 4)
