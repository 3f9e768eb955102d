"""What follows when an engine crashes: when it is started again, when a model or an item is given up. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MOST_IN_A_ROW = 3
"""So many ends without an answer in between, and the job fails."""
MOST_PER_ITEM = 3
"""An item whose calls were cut off so often is not asked again: it may be what ends the engine."""
_FIRST_WAIT_S = 0.2
_ITEMS_REMEMBERED = 4096


class Crashes:
    """Counts over one endpoint. A crash is an end that nobody asked for, before or after the engine was healthy."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        self._items: OrderedDict[Hashable, int] = OrderedDict()

    def crashed(self, model: str) -> bool:
        """Counts a crash; True when the model is given up, which the next job for it may try again."""
        count = self._in_a_row.get(model, 0) + 1
        if count >= MOST_IN_A_ROW:
            self._in_a_row.pop(model, None)
            return True
        self._in_a_row[model] = count
        return False

    def wait_s(self, model: str) -> float:
        """Seconds to wait before the model's next start."""
        count = self._in_a_row.get(model, 0)
        return _FIRST_WAIT_S * 4 ** (count - 1) if count else 0.0

    def cut_off(self, item: Hashable) -> bool:
        """Counts a call that a crash cut off; True when the item is given up."""
        count = self._items.pop(item, 0) + 1
        self._items[item] = count
        while len(self._items) > _ITEMS_REMEMBERED:
            self._items.popitem(last=False)
        return count >= MOST_PER_ITEM

    def answered(self, model: str, item: Hashable) -> None:
        self._in_a_row.pop(model, None)
        self._items.pop(item, None)
