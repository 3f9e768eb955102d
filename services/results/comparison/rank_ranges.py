"""The rank range of each run on a board."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from services.errors import TouchstoneError
from services.results.comparison import common_items, findings
from services.results.comparison.common_items import Common
from services.results.comparison.findings import Finding, open_cases
from services.results.comparison.selection import comparability, runs
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.shared_rows import SharedRows
from services.results.paired.pairs.difference import Difference, Pair, Pairs, Terms
from services.results.storage.database import Connection, Reads
from services.words import suites

log = logging.getLogger(__name__)

MOST = 30
"""Runs of a board that are tested against each other: the first ones. With a best case each they fit the 63 bits of
queries/comparison/patterns.sql."""
_KEPT = 256
"""Boards whose rank ranges are remembered."""
_WAITING = 16
"""Boards that wait for theirs; further ones are requested again at their next read."""

_MOMENT_S = 1.0

T = TypeVar("T")
RankRanges = Mapping[str, tuple[int, int]]
"""Lowest and highest rank by job."""
RankRangesOf = Callable[[str, Sequence[str]], RankRanges | None]
"""The rank ranges for an average by its stored name and the ranked runs, best first; None while they are computed."""
_Board = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Wish:
    """A board whose rank ranges are requested; `over` is set once the work has ended."""

    asked_at: float = field(default_factory=time.monotonic)
    over: asyncio.Event = field(default_factory=asyncio.Event)


def tested(
    connection: Connection,
    compared: Comparability,
    common: Common,
    metric: str,
    ranked: Sequence[int],
    every: Sequence[Pair],
    terms: Terms,
) -> list[Finding]:
    """Tests of all pairs of the ranked runs at once, whatever unanswered items would have been; `every` are the pairs
    to choose from, the better run first."""
    cases = open_cases(compared, ranked)
    pairs = [pair for pair in every if pair[0] in ranked and pair[1] in ranked]
    rows = SharedRows(connection, cases.compared, common, [metric])
    return findings.of_open_cases(rows, metric, pairs, ranked, cases, terms)


def among(ranked: Sequence[int], tested: Sequence[Finding], alpha: float) -> list[tuple[int, int]]:
    """One per ranked run, from tests of all their pairs; (0, 0) where there is only one."""
    if len(ranked) < 2:
        return [(0, 0)] * len(ranked)
    own = {place: number for number, place in enumerate(ranked)}
    compared = [(f, f.difference) for f in tested if f.difference is not None]
    return of_tests(
        len(ranked),
        [(own[f.a], own[f.b]) for f, _ in compared],
        [difference for _, difference in compared],
        [difference.p if f.adjusted is None else f.adjusted for f, difference in compared],
        alpha,
    )


def of_board(connection: Connection, average: str, job_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Rank ranges of the runs that contend for a board's first ranks. `average` names a metric and its rule, as
    stored."""
    metric, by = suites.parted(average)
    compared = comparability.compare(runs.load(connection, {job_id: job_id for job_id in job_ids}), by)
    common = common_items.choose(connection, compared)
    averages = [scored.averages for scored in common_items.read(connection, compared, common)]
    ordered = common_items.order(compared.runs, averages, metric)
    terms = Terms()
    pairs = common_items.pairs(ordered, averages, metric)
    found = among(ordered, tested(connection, compared, common, metric, ordered, pairs, terms), terms.alpha)
    return {compared.runs[place].job_id: place_range for place, place_range in zip(ordered, found, strict=True)}


class BoardRankRanges:
    """Rank ranges of boards, computed once for each set of runs and metric, in the background: a read waits a moment
    for them, and is answered without them if that is too short.

    The first `most` runs of a board are tested against each other. `moment_s` counts from the first read that needs a
    board's rank ranges, so that later reads of a slow board do not wait again.
    """

    def __init__(self, database: Reads, most: int = MOST, moment_s: float = _MOMENT_S) -> None:
        self._database = database
        self._most = most
        self._moment_s = moment_s
        self._known: OrderedDict[_Board, RankRanges] = OrderedDict()
        self._wanted: OrderedDict[_Board, _Wish] = OrderedDict()
        self._work: asyncio.Task[None] | None = None

    async def shown(self, read: Callable[[RankRangesOf], Awaitable[T]]) -> T:
        """The result of `read` with the known rank ranges; `read` runs once more if missing ones come within a moment.
        It may ask for one board's rank ranges, from any thread."""
        lacked: list[_Board] = []

        def of(metric: str, job_ids: Sequence[str]) -> RankRanges | None:
            found = self._of(metric, job_ids)
            if found is None:
                lacked.append((metric, tuple(job_ids[: self._most])))
            return found

        try:
            answer = await read(of)
        finally:
            self._catch_up()
        return await read(self._of) if lacked and await self._soon(lacked[-1]) else answer

    def _of(self, metric: str, job_ids: Sequence[str]) -> RankRanges | None:
        """Rank ranges of the ranked runs, best first; None until they are known."""
        board = metric, tuple(job_ids[: self._most])
        if len(board[1]) < 2:
            return {}
        known = self._known.get(board)
        if known is None:
            if board not in self._wanted and len(self._wanted) < _WAITING:
                self._wanted[board] = _Wish()
            return None
        # It is unknown how the last contenders compare with those behind them.
        return {job: (low, len(job_ids) if high == self._most else high) for job, (low, high) in known.items()}

    async def _soon(self, board: _Board) -> bool:
        """Whether the board's rank ranges are known within the moment."""
        wish = self._wanted.get(board)
        if wish is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wish.asked_at + self._moment_s - time.monotonic()):
                    await wish.over.wait()
        return board in self._known

    def _catch_up(self) -> None:
        """Starts to compute what was requested and is not known, unless that is under way."""
        if self._wanted and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._compute())

    async def _compute(self) -> None:
        while self._wanted:
            board = next(iter(self._wanted))
            try:
                self._known[board] = await self._database.read_long(partial(_of_board, board))
            except TouchstoneError as error:
                # The board stays without them; the next read requests them again.
                log.warning("rank ranges of a leaderboard of %s cannot be computed: %s", board[0], error)
            except Exception:
                # A defect: another request would only meet it again.
                self._known[board] = {}
                log.exception("rank ranges of a leaderboard of %s cannot be computed", board[0])
            finally:
                self._wanted.pop(board).over.set()
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)


def _of_board(board: _Board, connection: Connection) -> RankRanges:
    metric, job_ids = board
    return of_board(connection, metric, job_ids)


def of_tests(
    models: int, pairs: Pairs, differences: Sequence[Difference], adjusted: Sequence[float | None], alpha: float
) -> list[tuple[int, int]]:
    """The best and the worst rank of each model, from simultaneous tests of all pairs.

    A model's best rank is after all that are shown to be better, its worst before all that are shown to be worse. With
    an adjustment that bounds the chance of any false rejection by alpha, all true ranks are in their ranges with a
    chance of 1 − alpha or more.
    """
    better, worse = [0] * models, [0] * models
    for (a, b), difference, p in zip(pairs, differences, adjusted, strict=True):
        if p is None or p > alpha or not difference.value:
            continue
        ahead, behind = (a, b) if difference.value > 0 else (b, a)
        better[behind] += 1
        worse[ahead] += 1
    return [(1 + better[model], models - worse[model]) for model in range(models)]
