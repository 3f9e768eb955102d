"""Two models on a record of published answers, decided by several rules. Other rules are here to compare with."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from services.results.paired.binary import mcnemar
from services.results.sequential.draws import Pair
from services.results.sequential.evidence import evidence
from services.results.sequential.verdicts import BETTER, NO_DIFFERENCE, WORSE
from services.results.statistics.metric_values import Floats, Ints
from tests.record import authors, published

FOLDER = Path(os.environ.get("TOUCHSTONE_RECORDS_DIR", "")).resolve() / "matrices"
ABSENT = "There are no published answers. TOUCHSTONE_RECORDS_DIR must name the folder of the records."
TASKS = ("gsm8k", "math_l5", "crux")
SERVED = "405B"
ERROR = 0.05
_KINDS = {-1: Pair(1.0, 0.0), 0: Pair(1.0, 1.0), 1: Pair(0.0, 1.0)}
_OBRIEN_FLEMING = 2.126
"""For 20 looks and 5 %; Jennison and Turnbull, Group Sequential Methods (2000), table 2.3."""


@dataclass(frozen=True)
class Decision:
    """The verdict on B against A, and the part of the items that it took."""

    verdict: str
    part: float


Rule = Callable[[Ints], Decision]


def items(task: str) -> list[str]:
    """Their ids, in the order of `record`."""
    return list(_file(task)["items"])


def record(task: str) -> dict[str, Ints]:
    """By model, 1 for each item that it has right, else 0."""
    models: dict[str, str] = _file(task)["models"]
    return {name: np.array([mark == "1" for mark in marks], dtype=np.int64) for name, marks in models.items()}


def _file(task: str) -> dict[str, Any]:
    with gzip.open(FOLDER / f"{task}.json.gz", "rt") as file:
        found: dict[str, Any] = json.load(file)
    return found


def servings(task: str) -> list[Ints]:
    """As `record`, of one model at several providers. Of MATH-L5 from the outputs, as the record has one of them."""
    found = [marks for name, marks in record(task).items() if SERVED in name]
    if len(found) > 1:
        return found
    by_id = [
        {str(row["id"]): _is_right(each, row["output"][0], row["answer"]) for row in each.rows()}
        for each in published.records()
        if each.task == task and SERVED in each.model
    ]
    common = sorted(set.intersection(*map(set, by_id)))
    return [np.array([marks[item] for item in common], dtype=np.int64) for marks in by_id]


def _is_right(record: published.Record, output: str, reference: str) -> bool:
    given = authors.answer(record.task, record.model, output)
    return given is not None and authors.is_right(record.task, given, reference)


def differences(task: str) -> Iterator[Ints]:
    """Of each two models, B minus A by item."""
    for a, b in combinations(record(task).values(), 2):
        yield b - a


def equal(rng: Generator, difference: Ints) -> Ints:
    """As many items with and without a difference, each as likely one way as the other: two equal models."""
    turned: Ints = difference * rng.choice([-1, 1], len(difference))
    return turned


def bets(difference: Ints, margin: float = 0.0) -> Decision:
    """The product's rule, given all items in their order."""
    pairs = [_KINDS[each] for each in difference.tolist()]
    found = evidence(pairs, error=ERROR, margin=margin, total=len(pairs))
    assert found.decided_at is not None
    return Decision(found.verdict, found.decided_at / len(pairs))


def whole(difference: Ints) -> Decision:
    """The exact test of all items."""
    b, a = (np.array([float(np.sum(difference == sign))]) for sign in (1, -1))
    return Decision(_word(float(b[0] - a[0]) if mcnemar(a, b)[0] <= ERROR else 0.0), 1.0)


def opposite(verdict: str, truth: str) -> bool:
    return {verdict, truth} == {BETTER, WORSE}


def peeking(difference: Ints) -> Decision:
    """The same test after each hundredth of the items, until it shows something."""
    looks = np.unique(np.ceil(np.arange(1, 101) * len(difference) / 100).astype(int))
    b, a = (np.cumsum(difference == sign)[looks - 1].astype(float) for sign in (1, -1))
    return _first(mcnemar(a, b) <= ERROR, b - a, looks, len(difference))


def group_sequential(difference: Ints) -> Decision:
    """20 looks with the limits of O'Brien and Fleming."""
    looks = np.ceil(np.arange(1, 21) * len(difference) / 20).astype(int)
    b, a = (np.cumsum(difference == sign)[looks - 1].astype(float) for sign in (1, -1))
    limits = _OBRIEN_FLEMING * np.sqrt(20 / np.arange(1, 21))
    return _first(np.abs(b - a) >= limits * np.sqrt(np.maximum(a + b, 1)), b - a, looks, len(difference))


RULES: dict[str, Rule] = {
    "touchstone decide": bets,
    "peeking 100 times": peeking,
    "O'Brien-Fleming, 20 looks": group_sequential,
    "all items": whole,
}


def _first(shown: np.typing.NDArray[np.bool_], lead: Floats, looks: Ints, total: int) -> Decision:
    if not shown.any():
        return Decision(NO_DIFFERENCE, 1.0)
    place = int(shown.argmax())
    return Decision(_word(float(lead[place])), float(looks[place]) / total)


def _word(lead: float) -> str:
    return NO_DIFFERENCE if not lead else BETTER if lead > 0 else WORSE
