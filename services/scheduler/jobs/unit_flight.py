"""A unit that has begun to report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.bus import ResultHeaders


@dataclass(slots=True)
class Flight:
    """Counts of the unit's newest delivery, and what earlier ones have cost and may have cost.

    `size` is the items that it was released with, `most` the US dollars that one answer may cost at most (0 where no
    budget is kept), `first` the stream position before its first message. `delivery` begins as the number of the last
    delivery whose calls are accounted for.
    """

    size: int
    most: float
    first: int
    paid_once: bool = False
    """A later delivery reads the answers of the same calls again, as of a provider's batch."""
    delivery: int = 0
    heard: bool = False
    """Whether anything came of that delivery since."""
    items: int = 0
    errors: int = 0
    tokens: int = 0
    untold: int = 0
    retries: int = 0
    unpriced: int = 0
    begun: int = 0
    """Items that are stored or whose call has begun; 0 where that is not told."""
    called: bool = False
    """Whether some of the items were answered by calls of this delivery."""
    costs: list[float] = field(default_factory=list)
    """US dollars of messages that tell a price, of all deliveries: each tells of calls of its own."""
    lost_calls: int = 0
    """Calls of earlier deliveries, at most, whose price was never told."""
    evaluator: str = ""

    def count(self, headers: ResultHeaders) -> None:
        """Adds a message of the newest delivery; of one of an earlier delivery no more than what its calls cost."""
        if headers.delivery > self.delivery:
            self._begin(headers.delivery)
        if headers.cost is not None and not (self.paid_once and headers.delivery < self.delivery):
            self.costs.append(headers.cost / 1e6)
        if not self.is_newest(headers):
            return
        self.items += headers.items
        self.errors += headers.errors
        self.tokens += headers.output_tokens
        self.untold += headers.untold
        self.retries += headers.retries
        self.unpriced += headers.unpriced
        self.called |= headers.cost is not None or headers.unpriced > 0
        self.evaluator = headers.evaluator or self.evaluator

    def note(self, headers: ResultHeaders) -> None:
        """Takes over how many items are stored or have begun."""
        if headers.delivery > self.delivery:
            self._begin(headers.delivery)
        if self.is_newest(headers):
            self.begun = max(self.begun, headers.items)
            self.evaluator = headers.evaluator or self.evaluator

    def is_newest(self, headers: ResultHeaders) -> bool:
        """Whether a message is of the delivery that is counted."""
        return self.heard and headers.delivery == self.delivery

    def _begin(self, delivery: int) -> None:
        if not self.paid_once:
            unheard = delivery - self.delivery - 1
            self.lost_calls += self.size * unheard + (self._cut_off(counted=self.begun > 0) if self.heard else 0)
        else:
            self.costs = []
        self.delivery, self.heard = delivery, True
        self.items = self.errors = self.tokens = self.untold = self.retries = self.unpriced = self.begun = 0
        self.called = False

    @property
    def silent(self) -> int:
        """Calls of this delivery, at most, whose price is not told, or not yet."""
        return max(0, self.size - self.items) + self.unpriced

    @property
    def cost(self) -> float | None:
        """US dollars; None where no answer's price is known."""
        return fsum(self.costs) if self.costs else None

    @property
    def lost(self) -> float:
        """US dollars that calls of earlier deliveries may have cost at most."""
        return self.most * self.lost_calls

    @property
    def open(self) -> float:
        """US dollars that calls of this delivery may have cost or cost yet, beyond what they are known to."""
        return self.most * self.silent

    def given_up(self, *, counted: bool) -> int:
        """Calls of all deliveries, at most, whose price was never told, if none begins any more. `counted`: each call
        was told of before it began."""
        return self.lost_calls + self._cut_off(counted=counted)

    def _cut_off(self, *, counted: bool) -> int:
        # Without a word of a call, new answers show that its evaluator tells of none.
        if counted and (self.begun >= self.items or not self.called):
            return max(0, self.begun - self.items) + self.unpriced
        return self.silent


@dataclass(frozen=True, slots=True)
class Charge:
    """A unit that was taken back: what is accounted for. `sequence` is a position in RESULTS, `times` how often it was
    taken back, `deliveries` the number of its last delivery by then."""

    sequence: int = 0
    times: int = 0
    deliveries: int = 0
