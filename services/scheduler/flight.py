"""A unit that has begun to report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.bus import ResultHeaders


@dataclass(slots=True)
class Flight:
    """Counts of the unit's newest delivery, and what earlier ones may have cost.

    `size` is the items that it was released with, `most` the US dollars that one answer may cost at most (0 where no
    budget is kept), `first` the stream position before its first message.
    """

    size: int
    most: float
    first: int
    paid_once: bool = False
    """A later delivery reads the answers of the same calls again, as of a provider's batch."""
    delivery: int = 0
    items: int = 0
    errors: int = 0
    tokens: int = 0
    untold: int = 0
    retries: int = 0
    unpriced: int = 0
    costs: list[float] = field(default_factory=list)
    """US dollars of messages that tell a price."""
    lost: float = 0.0
    """US dollars that calls of earlier deliveries may have cost at most."""
    evaluator: str = ""

    def count(self, headers: ResultHeaders) -> None:
        """Adds a message of the newest delivery; one of an earlier delivery changes nothing."""
        if headers.delivery > self.delivery:
            self._begin(headers.delivery)
        elif headers.delivery < self.delivery:
            return
        self.items += headers.items
        self.errors += headers.errors
        self.tokens += headers.output_tokens
        self.untold += headers.untold
        self.retries += headers.retries
        self.unpriced += headers.unpriced
        if headers.cost is not None:
            self.costs.append(headers.cost / 1e6)
        self.evaluator = headers.evaluator or self.evaluator

    def _begin(self, delivery: int) -> None:
        # Answers of the delivery before are perhaps told again and perhaps asked for again: both are counted.
        if not self.paid_once:
            unheard = delivery - self.delivery - 1
            self.lost += self.most * self.size * unheard + (self._so_far + self.open if self.delivery else 0.0)
        self.delivery = delivery
        self.items = self.errors = self.tokens = self.untold = self.retries = self.unpriced = 0
        self.costs = []

    @property
    def cost(self) -> float | None:
        """US dollars; None where no answer's price is known."""
        return fsum(self.costs) if self.costs else None

    @property
    def _so_far(self) -> float:
        return self.cost or 0.0 if self.most else 0.0

    @property
    def open(self) -> float:
        """US dollars that its calls may have cost or cost yet, beyond what they are known to."""
        return self.most * (max(0, self.size - self.items) + self.unpriced)

    @property
    def bound(self) -> float:
        """US dollars of the most that all of its deliveries can have cost."""
        return self.lost + self._so_far + self.open
