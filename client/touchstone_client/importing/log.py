"""The common form of all tools' logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from touchstone.v1.results_service_pb2 import ImportedAnswer
from touchstone_client.errors import InvalidError


@dataclass(frozen=True, slots=True)
class Target:
    """A task of ours that a log is about. `category` says which rows are its own, if a log holds several tasks' rows:
    those with this text in their column "category", numbered among themselves."""

    suite: str
    task: str
    category: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of a log: its number in the published split and the answer to it. Its task is found later.

    `place` is for sentences: "line 17". `row` is the tool's copy of the row.
    """

    place: str
    item: int
    answer: ImportedAnswer
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """One task's run. `shots` is None if the log does not say; `mode` a word of `services.words.enums.MODES`.

    `prompt_hash` distinguishes the tool's prompt templates; empty if the log does not say. `samples` reads the file
    again at each call and raises InvalidError for an invalid line. `models` are the models that the log names; the run
    uses the model if it is the only one.
    """

    tool: str
    version: str
    file: Path
    task: str
    mode: str
    shots: int | None
    parameters: Mapping[str, Any]
    template: str
    prompt_hash: str
    completed_at: datetime | None
    samples: Callable[[], Iterator[Sample]]
    models: Sequence[str] = ()


def wrong(file: Path, place: str, what: str) -> InvalidError:
    """The error for a place in a file."""
    return InvalidError.of(f"{file.name}, {place}: {what}" if place else f"{file.name}: {what}")
