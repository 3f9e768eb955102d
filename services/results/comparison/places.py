"""Which places on a board the data leave open to each run."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial

from services.errors import TouchstoneError
from services.results.comparison import common_items, common_scores, comparability, findings, order, runs
from services.results.comparison.findings import Finding
from services.results.comparison.shared_rows import SharedRows
from services.results.database import Connection, Database
from services.results.paired.difference import Pair, Terms
from services.results.paired.ranks import rank_ranges

log = logging.getLogger(__name__)

MOST = 30
"""Runs of a board that are tested against each other: the first ones."""
_KEPT = 256
"""Boards whose places are remembered."""
_WAITING = 16
"""Boards that wait for theirs; more are asked for again when they are next looked at."""

Places = Mapping[str, tuple[int, int]]
"""Lowest and highest place by job."""
_Board = tuple[str, tuple[str, ...]]


def tested(rows: SharedRows, metric: str, ranked: Sequence[int], every: Sequence[Pair], terms: Terms) -> list[Finding]:
    """Tests of all pairs of the ranked runs at once; `every` are the pairs to choose from."""
    pairs = [pair for pair in every if pair[0] in ranked and pair[1] in ranked]
    return findings.of_suite(rows, metric, pairs, ranked, terms, primary=True)


def among(ranked: Sequence[int], tested: Sequence[Finding], alpha: float) -> list[tuple[int, int]]:
    """One per ranked run, from tests of all their pairs; (0, 0) where there is only one."""
    if len(ranked) < 2:
        return [(0, 0)] * len(ranked)
    own = {place: number for number, place in enumerate(ranked)}
    compared = [(f, f.difference) for f in tested if f.difference is not None]
    return rank_ranges(
        len(ranked),
        [(own[f.a], own[f.b]) for f, _ in compared],
        [difference for _, difference in compared],
        [difference.p if f.adjusted is None else f.adjusted for f, difference in compared],
        alpha,
    )


def of_board(connection: Connection, metric: str, job_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Of the runs that contend for a board's first places."""
    compared = comparability.compare(runs.load(connection, {job_id: job_id for job_id in job_ids}))
    common = common_items.choose(connection, compared)
    averages = [scored.averages for scored in common_scores.read(connection, compared, common)]
    rows = SharedRows(connection, compared, common, [metric])
    ordered = order.order(compared.runs, averages, metric)
    terms = Terms()
    pairs = order.pairs(ordered, averages, metric)
    found = among(ordered, tested(rows, metric, ordered, pairs, terms), terms.alpha)
    return {compared.runs[place].job_id: place_range for place, place_range in zip(ordered, found, strict=True)}


class BoardPlaces:
    """Places of boards, computed once for each set of runs and metric: beside the requests, which do not wait for it.

    The first `most` runs of a board are tested against each other. `of` may be called from any thread, `catch_up` from
    the event loop's.
    """

    def __init__(self, database: Database, most: int = MOST) -> None:
        self._database = database
        self._most = most
        self._known: OrderedDict[_Board, Places] = OrderedDict()
        self._wanted: OrderedDict[_Board, None] = OrderedDict()
        self._work: asyncio.Task[None] | None = None

    def of(self, metric: str, job_ids: Sequence[str]) -> Places:
        """Of the ranked runs, best first; none until they are known."""
        board = metric, tuple(job_ids[: self._most])
        known = self._known.get(board)
        if known is None:
            if len(board[1]) > 1 and len(self._wanted) < _WAITING:
                self._wanted[board] = None
            return {}
        # Nothing is known of how the last contenders and those behind them compare.
        return {job: (low, len(job_ids) if high == self._most else high) for job, (low, high) in known.items()}

    def catch_up(self) -> None:
        """Starts to compute what was asked for and is not known, unless that is under way."""
        if self._wanted and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._compute())

    async def _compute(self) -> None:
        while self._wanted:
            board = next(iter(self._wanted))
            try:
                self._known[board] = await self._database.read_long(partial(_of_board, board))
            except TouchstoneError as error:
                # The board stays without them; the next look at it asks again.
                log.warning("places on a board of %s cannot be computed: %s", board[0], error)
            except Exception:
                # A defect: asking again would only meet it again.
                self._known[board] = {}
                log.exception("places on a board of %s cannot be computed", board[0])
            finally:
                del self._wanted[board]
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)


def _of_board(board: _Board, connection: Connection) -> Places:
    metric, job_ids = board
    return of_board(connection, metric, job_ids)
