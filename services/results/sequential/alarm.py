"""Whether an endpoint still answers items as it did in a reference run. Pure.

Bets are made on the items asked again (see capital.py), each valid at every look:

- On the score. If the model is the same, chance alone makes an answer better or worse, as often one as the other.
- On answers, and on texts. If the model is the same, each of three askings of an item (in the reference, once more, and
  now) is as likely as any other to be the one that differs. So the present answer differs from the reference as often
  as the other one does. Whatever the share is by which answers differ by chance, it need not be known or estimated.

Each turn through all items is tested alone, as the reference's answers are the same in all turns. The error is
shared among turns, and among what is bet on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.results.sequential.capital import Bets
from services.results.sequential.draws import Draws
from services.results.statistics.metric_values import Floats

SCORE, ANSWERS, TEXT = "score", "answers", "text"
SIGNALS = (SCORE, ANSWERS, TEXT)
_SHARES = {SCORE: 0.5, ANSWERS: 0.3, TEXT: 0.2}
_FIRST_TURN = 0.9
"""Part of the error that is for the first turn. The turn after k others has 1 / k(k+1) of the rest."""
_WORSE = 2 / 3
"""Part of the score's error that is for worse answers: the change that matters more."""
_NOTHING = -1000.0
"""The logarithm of no evidence at all: infinity has no form in JSON."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A canary asked in the `turn`, counted from 0. `score` is the present score minus the reference's, within [-1, 1].
    `answers` and `text` are 1 if only the present one differs from the reference, -1 if only the reference's own second
    asking does, else 0. None where one of them is not known."""

    turn: int
    score: float | None = None
    answers: int | None = None
    text: int | None = None


@dataclass(frozen=True, slots=True)
class Alarm:
    """`raised_at` is after how many askings, by the signal `by`; `since` is the place of the asking from which on the
    evidence grew. None and '' without an alarm.

    `evidence` (askings,) has for each signal the log of its capital in the turn, times its part of the error: the alarm
    is raised when one of them reaches the `threshold`.
    """

    raised_at: int | None
    by: str
    since: int | None
    evidence: dict[str, Floats]
    threshold: float


def alarm(askings: Sequence[Asking], *, error: float, second: bool) -> Alarm:
    """Of canaries in the order asked. `second` says that answers of a second asking are known from the beginning;
    otherwise those of the first turn serve, which itself bets on scores alone.

    An endpoint that has not changed raises the alarm with a chance of at most `error`, however long it is watched.
    """
    turns = np.array([asking.turn for asking in askings], dtype=np.int64)
    evidence = {signal: np.full(len(askings), _NOTHING) for signal in SIGNALS}
    threshold = -math.log(error)
    raised: list[tuple[int, int, str, int]] = []
    for turn in np.unique(turns).tolist():
        places = np.flatnonzero(turns == turn)
        for rank, (signal, share) in enumerate(_shares(turn, second).items()):
            found = [(place, getattr(askings[place], signal)) for place in places.tolist()]
            known = np.array([place for place, value in found if value is not None], dtype=np.int64)
            if not len(known):
                continue
            values = np.array([value for _, value in found if value is not None], dtype=float)
            logs = _logs(values, signal) + math.log(share)
            since_then = np.searchsorted(known, places, side="right")
            evidence[signal][places] = np.concatenate([[math.log(share)], logs])[since_then]
            reached = np.flatnonzero(logs >= threshold)
            if len(reached):
                first = int(reached[0])
                raised.append((int(known[first]), rank, signal, int(known[_lowest(logs[:first], math.log(share))])))
    if not raised:
        return Alarm(None, "", None, evidence, threshold)
    at, _, by, since = min(raised)
    return Alarm(at + 1, by, since, evidence, threshold)


def _lowest(logs: Floats, begun: float) -> int:
    """After how many values the capital was lowest: the last such time."""
    path = np.concatenate([[begun], logs])
    return int(len(path) - 1 - np.argmin(path[::-1]))


def _shares(turn: int, second: bool) -> dict[str, float]:
    """Parts of the error by signal."""
    of_turn = _FIRST_TURN if turn == 0 else (1 - _FIRST_TURN) / (turn * (turn + 1))
    if turn == 0 and not second:
        return {SCORE: of_turn}
    return {signal: of_turn * share for signal, share in _SHARES.items()}


def _logs(values: Floats, signal: str) -> Floats:
    """Of the capital after each value."""
    ones, count = np.ones(len(values)), len(values)
    draws = Draws(values, ones, values, ones, np.zeros(count, dtype=np.int64), np.arange(1, count + 1))
    bets = Bets(draws, np.arange(1, count + 1))
    if signal != SCORE:
        return bets.log_capital(0.0, above=True)
    better, worse = bets.log_capital(0.0, above=True), bets.log_capital(0.0, above=False)
    found: Floats = np.maximum(better + math.log(1 - _WORSE), worse + math.log(_WORSE))
    return found
