"""How a text differs from another, word by word. Pure.

A longest common subsequence of the words, by the bit-parallel method of Crochemore, Iliopoulos, Pinzon and Reid (2001):
a row of the table is one integer with a bit per word, so that any 4,000 words against 4,000 take some milliseconds.
`difflib` takes minutes where words repeat.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from touchstone.v1.results_service_pb2 import WordDiff

Kind: TypeAlias = WordDiff.Part.Kind

SAME, REMOVED, ADDED = WordDiff.Part.KIND_SAME, WordDiff.Part.KIND_REMOVED, WordDiff.Part.KIND_ADDED

MOST_WORDS = 4_000
"""Apart from the beginning and end that the texts share; where either has more left, all of it counts as changed."""

_WORD = re.compile(r"(\S*)(\s*)")
_Word = tuple[str, str]
"""A word and the white space after it; the first one may be empty."""


def word_diff(before: str, after: str) -> WordDiff:
    """SAME and REMOVED parts in order are `before`, SAME and ADDED ones `after`. Neighbours differ in kind; in a
    change, the removed part comes first."""
    old, new = _words(before), _words(after)
    parts: list[tuple[Kind, str]] = []
    removed: list[str] = []
    added: list[str] = []
    same: list[str] = []

    def end_change() -> None:
        parts.extend((kind, "".join(texts)) for kind, texts in ((REMOVED, removed), (ADDED, added)) if texts)
        removed.clear()
        added.clear()

    def end_same() -> None:
        if same:
            parts.append((SAME, "".join(same)))
            same.clear()

    done_old = done_new = 0
    for here, there in (*_matches([word for word, _ in old], [word for word, _ in new]), (len(old), len(new))):
        changed_old, changed_new = old[done_old:here], new[done_new:there]
        if changed_old or changed_new:
            end_same()
            removed += map("".join, changed_old)
            added += map("".join, changed_new)
        done_old, done_new = here + 1, there + 1
        if here == len(old):
            break
        end_change()
        (word, space), (_, other) = old[here], new[there]
        if space == other:
            same.append(word + space)
        else:
            # The word is kept; only the white space after it changed.
            same += [word] if word else []
            end_same()
            removed += [space] if space else []
            added += [other] if other else []
    end_same()
    end_change()
    return WordDiff(parts=[WordDiff.Part(kind=kind, text=text) for kind, text in parts])


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
    if max(len(middle_old), len(middle_new)) <= MOST_WORDS:
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
