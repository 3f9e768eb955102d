"""Few-shot examples: their choice, and their form before an item. The same for every item of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from services.evaluator.answers.scoring import DELIMITER
from services.evaluator.items.hashing import text_hash
from services.evaluator.items.task import Message

_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Shot:
    """An example: its row in the train split, its item hash, its prompt and its answer."""

    index: int
    hash: str
    prompt: str
    answer: str


@dataclass(frozen=True)
class Examples:
    """The text before an item: `preamble` (log-likelihood mode) and the examples. `spare` replaces an example that is
    the item itself."""

    shots: tuple[Shot, ...]
    spare: Shot | None
    preamble: str

    def without(self, item_hash: str) -> Examples:
        """The examples for an item, which is never among them."""
        if item_hash not in self._hashes:
            return self
        others = [shot for shot in self.shots if shot.hash != item_hash]
        if self.spare is not None:
            others.append(self.spare)
        return Examples(tuple(others), None, self.preamble)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """Generate mode: a user's and an assistant's message for each example."""
        return tuple(
            message
            for shot in self.shots
            for message in (Message("user", shot.prompt), Message("assistant", shot.answer))
        )

    @cached_property
    def context(self) -> str:
        """Log-likelihood mode: the preamble, then each example with its continuation, as lm_eval writes them."""
        shown = (f"{shot.prompt}{DELIMITER}{shot.answer}{_BETWEEN}" for shot in self.shots)
        return self.preamble + "".join(shown)

    @cached_property
    def texts(self) -> list[str]:
        """The parts, for hashes."""
        parts = [part for shot in self.shots for part in (shot.prompt, shot.answer)]
        return [self.preamble, *parts] if self.preamble else parts

    def hash(self, prompt: str) -> str:
        """Hash of the whole prompt of an item."""
        return text_hash("\x1e".join([*self.texts, prompt]))

    @cached_property
    def _hashes(self) -> frozenset[str]:
        return frozenset(shot.hash for shot in self.shots)


def order(references: Sequence[str], count: int, balanced: bool) -> list[int]:
    """Indices of the examples in increasing order, then the spare one's if there is one.

    The first `count` rows; when `balanced`, the first rows of each answer up to its share, as some train splits begin
    with rows of one class. A class with fewer rows than its share leaves its places to the first rows of the others.
    """
    chosen = list(range(min(count, len(references))))
    if balanced:
        share = -(-count // max(1, len(set(references))))
        taken: Counter[str] = Counter()
        fair: list[int] = []
        for place, reference in enumerate(references):
            if taken[reference] < share and len(fair) < count:
                taken[reference] += 1
                fair.append(place)
        chosen = sorted([*fair, *_others(fair, len(references))[: count - len(fair)]])
    spare = next(iter(_others(chosen, len(references))), None)
    return chosen if spare is None else [*chosen, spare]


def _others(chosen: Sequence[int], size: int) -> list[int]:
    taken = set(chosen)
    return [place for place in range(size) if place not in taken]
