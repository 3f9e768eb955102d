"""The sums over the rows of a dataset, their ids so far, and what is wrong with those that do not fit."""

from __future__ import annotations

import hashlib
import os
import re
from array import array

from touchstone.v1.dataset_pb2 import BadLine, BadLineReason, Dataset, DatasetRow

_MOST_NAMES = 100
_MOST_MODELS = 10
_BYTES_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4
_TOKENS_AN_IMAGE = 1000
_SHOWN_LINES = 100
_REASON_CHARACTERS = 300
_MOST_REASONS = 100
_LINES_A_REASON = 20
_COMPARED_CHARACTERS = 1000
"""Of a reason: what follows does not tell two apart."""
_VALUE = re.compile(r'"[^"]*(?:"|$)|(?<!\w)-?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?')
"""What may differ between lines with the same fault: `quoted` leaves no quotation mark inside a value."""


class Tally:
    """Counts rows one by one."""

    def __init__(self) -> None:
        self.rows = 0
        self.rows_with_reference = 0
        self._characters = 0
        self._tokens = 0
        self._longest = 0
        self._most_max_tokens = 0
        self._bounded = True
        self.groups = 0
        self._groups = CustomIds()
        self._names: dict[str, None] = {}
        self._models: dict[str, None] = {}

    def add(self, row: DatasetRow) -> None:
        self.rows += 1
        self.rows_with_reference += bool(row.reference)
        size = 0
        for message in row.messages:
            content = message.content
            self._characters += len(content)
            size += len(content) if content.isascii() else len(content.encode())
            if row.has_parts:
                size += sum(len(call.name) + len(call.arguments.encode()) for call in message.tool_calls)
                self._tokens += _TOKENS_AN_IMAGE * sum(part.HasField("image") for part in message.parts)
        self._tokens += -(-size // _BYTES_A_TOKEN) + _TOKENS_A_MESSAGE * len(row.messages)
        self._longest = max(self._longest, size)
        if row.sampling.HasField("max_tokens"):
            self._most_max_tokens = max(self._most_max_tokens, row.sampling.max_tokens)
        else:
            self._bounded = False

    def note_names(self, names: list[str]) -> None:
        """Metadata fields of a row."""
        for name in names:
            if name not in self._names and len(self._names) < _MOST_NAMES:
                self._names[name] = None

    def note_group(self, name: str) -> None:
        """The group that a row is in; empty for none."""
        if name and not self._groups.add(name, 1):
            self.groups += 1

    def note_model(self, model: str) -> None:
        """The model that a batch line names."""
        if len(self._models) < _MOST_MODELS:
            self._models[model] = None

    @property
    def names(self) -> list[str]:
        return list(self._names)

    def dataset(self) -> Dataset:
        return Dataset(
            rows=self.rows,
            rows_with_reference=self.rows_with_reference,
            prompt_characters=self._characters,
            input_tokens=self._tokens,
            longest_prompt_bytes=self._longest,
            metadata_fields=self._names,
            models=self._models,
            most_max_tokens=self._most_max_tokens if self._bounded else 0,
            groups=self.groups,
        )


_FIRST_SLOTS = 1 << 10


class CustomIds:
    """A hash table in arrays: a Python dictionary takes five times as much, and an upload may have a million ids.

    Two ids of a file collide by chance once in 10^25 files.
    """

    def __init__(self) -> None:
        # A random key, so that nobody can choose ids that collide.
        self._key = os.urandom(16)
        self._slots = array("i", [-1]) * _FIRST_SLOTS
        self._high = array("Q")
        self._low = array("Q")
        self._lines = array("I")

    def add(self, custom_id: str, line: int) -> int:
        """The line that has the id already, 0 when it is new."""
        digest = hashlib.blake2b(custom_id.encode(), digest_size=16, key=self._key).digest()
        high, low = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
        slot = self._slot(high, low)
        if (entry := self._slots[slot]) >= 0:
            return self._lines[entry]
        self._slots[slot] = len(self._lines)
        self._high.append(high)
        self._low.append(low)
        self._lines.append(line)
        if 2 * len(self._lines) > len(self._slots):
            self._grow()
        return 0

    def _slot(self, high: int, low: int) -> int:
        """Where the id is, or the free place where it goes."""
        mask = len(self._slots) - 1
        slot = low & mask
        while (entry := self._slots[slot]) >= 0 and (self._low[entry] != low or self._high[entry] != high):
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        self._slots = array("i", [-1]) * (2 * len(self._slots))
        mask = len(self._slots) - 1
        slots = self._slots
        for entry, low in enumerate(self._low):
            slot = low & mask
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = entry


class WrongLines:
    """The lines that do not fit: the first ones, and all by their reason. Holds little, however many there are."""

    def __init__(self) -> None:
        self.total = 0
        self.first: list[BadLine] = []
        self._groups: dict[tuple[str, ...], _Group] = {}
        """By the words between the values, and whether these are quoted. With marks in the places of values, a mark
        in a reason would pass for one."""

    def add(self, line: int, reason: str) -> None:
        self.total += 1
        if len(self.first) < _SHOWN_LINES:
            self.first.append(BadLine(line=line, reason=reason[:_REASON_CHARACTERS]))
        compared = reason[:_COMPARED_CHARACTERS]
        kinds = ('"' if value.startswith('"') else "1" for value in _VALUE.findall(compared))
        fault = (*_VALUE.split(compared), *kinds)
        group = self._groups.get(fault)
        if group is None:
            if len(self._groups) == _MOST_REASONS:
                return
            group = self._groups[fault] = _Group(compared)
        group.add(line, compared)

    def reasons(self) -> list[BadLineReason]:
        """The most frequent first; of equal ones, the one that occurs first."""
        groups = sorted(self._groups.values(), key=lambda group: -group.count)
        return [BadLineReason(reason=group.reason, count=group.count, lines=group.lines) for group in groups]

    @property
    def other_lines(self) -> int:
        """How many have a reason that is not in `reasons`."""
        return self.total - sum(group.count for group in self._groups.values())


class _Group:
    """Lines whose reasons differ in quoted values and numbers alone."""

    def __init__(self, first: str) -> None:
        self.count = 0
        self.lines: list[int] = []
        self._first = first
        self._values: list[str | None] = list(_VALUE.findall(first))
        """Those of the first line; None where another line has another one."""

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if len(self.lines) < _LINES_A_REASON:
            self.lines.append(line)
        if reason != self._first:
            found = _VALUE.findall(reason)
            self._values = [old if old == new else None for old, new in zip(self._values, found, strict=True)]

    @property
    def reason(self) -> str:
        values = iter(self._values)
        return _VALUE.sub(lambda value: next(values) or _placeholder(value), self._first)[:_REASON_CHARACTERS]


def _placeholder(value: re.Match[str]) -> str:
    return '"…"' if value[0].startswith('"') else "…"
