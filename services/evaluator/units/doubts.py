"""Impossible numbers of a provider, in the log of the job whose answer had them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from services.evaluator.pacing.notices import Firsts
from services.evaluator.units.units_in_hand import Held

log = logging.getLogger(__name__)


class Doubts:
    """One line for each field and job: a provider that is wrong once is wrong in every answer."""

    def __init__(self) -> None:
        self._firsts = Firsts()

    def tell(self, held: Held, doubtful: Iterable[str]) -> None:
        """`doubtful` as of a Response."""
        for told in doubtful:
            if self._firsts.is_first(held.job, told.partition(" ")[0]):
                log.warning("%s says that %s, which counts as unknown", held.endpoint, told, extra=held.logged)
