"""Draws that stay the same in every Python version: all of them come from `random()` alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A seeded stream of choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def one(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def two(self, options: Sequence[T]) -> tuple[T, T]:
        """Two options from different places."""
        first = int(self._random() * len(options))
        second = int(self._random() * (len(options) - 1))
        return options[first], options[second + (second >= first)]

    def kind(self, weights: Sequence[tuple[float, T]]) -> T:
        """One of the weighted options; the weights add up to 1."""
        point = self._random()
        for weight, option in weights:
            point -= weight
            if point < 0:
                return option
        return weights[-1][1]


def sentence(text: str) -> str:
    """With a capital letter at the start, and a full stop unless it ends with another mark."""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".?!" else ".")


def a(noun: str) -> str:
    """The noun phrase with its indefinite article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
