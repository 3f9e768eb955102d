"""How a text differs from another, word by word. Pure.

A longest common subsequence of the words, by the bit-parallel method of Crochemore, Iliopoulos, Pinzon and Reid (2001):
a row of the table is one integer with a bit per word, so that any 4,000 words against 4,000 take some milliseconds.
`difflib` takes minutes where words repeat.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from touchstone.v1.results_service_pb2 import WordDiff

Kind: TypeAlias = WordDiff.Part.Kind

SAME, REMOVED, ADDED = WordDiff.Part.KIND_SAME, WordDiff.Part.KIND_REMOVED, WordDiff.Part.KIND_ADDED

MOST_WORDS = 4_000
"""Apart from the beginning and end that the texts share; where either has more left, all of it counts as changed."""

_WORD = re.compile(r"(\S*)(\s*)")
_Part = tuple[Kind, str]
_Word = tuple[str, str]
"""A word and the white space after it; the first one may be empty."""


def word_diff(before: str, after: str) -> WordDiff:
    """SAME and REMOVED parts in order are `before`, SAME and ADDED ones `after`. Neighbours differ in kind; in a
    change, the removed part comes first."""
    old, new = before.split(), after.split()
    start, end = _shared(old, new)
    here, there = _cut(before, len(old), start, end), _cut(after, len(new), start, end)
    # What is too long to compare is one change.
    comparable = max(len(old), len(new)) - start - end <= MOST_WORDS
    changed = _compared(here[1], there[1]) if comparable else [(REMOVED, here[1]), (ADDED, there[1])]
    parts = [*_compared(here[0], there[0]), *changed, *_compared(here[2], there[2])]
    return WordDiff(parts=[WordDiff.Part(kind=kind, text=text) for kind, text in _joined(parts)])


def _shared(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many words are the same at the beginning, and of the others at the end."""
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    rest = shorter - start
    end = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    return start, end


def _cut(text: str, words: int, start: int, end: int) -> tuple[str, str, str]:
    """The first `start` of its words, those between, and the last `end`, each with the white space after it."""
    begins, ends = 0, len(text)
    if start == words:
        begins = len(text)
    elif start:
        begins -= len(text.split(None, start)[start]) - len(text)
    if end:
        before = len(text.rsplit(None, end)[0]) if end < words else 0
        ends -= len(text[before:].lstrip())
    return text[:begins], text[begins:ends], text[ends:]


def _compared(before: str, after: str) -> list[_Part]:
    if before == after:
        return [(SAME, before)]
    old, new = _words(before), _words(after)
    parts: list[_Part] = []
    done_old = done_new = 0
    for here, there in (*_matches([word for word, _ in old], [word for word, _ in new]), (len(old), len(new))):
        parts.append((REMOVED, "".join(map("".join, old[done_old:here]))))
        parts.append((ADDED, "".join(map("".join, new[done_new:there]))))
        done_old, done_new = here + 1, there + 1
        if here == len(old):
            break
        (word, space), (_, other) = old[here], new[there]
        if space == other:
            parts.append((SAME, word + space))
        else:
            # The word is kept; only the white space after it changed.
            parts += [(SAME, word), (REMOVED, space), (ADDED, other)]
    return parts


def _joined(parts: Sequence[_Part]) -> Iterator[_Part]:
    """Without empty parts; neighbours of one kind, and all that is removed or added between two that stay, are one."""
    for stays, run in groupby((part for part in parts if part[1]), lambda part: part[0] == SAME):
        held = list(run)
        for kind in (SAME,) if stays else (REMOVED, ADDED):
            if text := "".join(text for its, text in held if its == kind):
                yield kind, text


def _words(text: str) -> list[_Word]:
    return [(word, space) for word, space in _WORD.findall(text) if word or space]


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of words that stay, increasing in both."""
    start = 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    yield from ((place, place) for place in range(start))
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    yield from ((start + here, start + there) for here, there in reversed(_longest(middle_old, middle_new)))
    yield from ((len(old) - place, len(new) - place) for place in range(end, 0, -1))


def _longest(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence, last match first.

    Bit j of a row is 0 where one more word is common up to new[j] than up to the word before it.
    """
    if not old or not new:
        return []
    where: defaultdict[str, int] = defaultdict(int)
    for place, word in enumerate(new):
        where[word] |= 1 << place
    every = (1 << len(new)) - 1
    row, rows = every, []
    for word in old:
        met = row & where.get(word, 0)
        row = ((row + met) | (row - met)) & every
        rows.append(row)
    found = []
    here, there = len(old) - 1, len(new) - 1
    while here >= 0 and there >= 0:
        if rows[here] >> there & 1:
            there -= 1
        elif here and not rows[here - 1] >> there & 1:
            here -= 1
        else:
            found.append((here, there))
            here, there = here - 1, there - 1
    return found
