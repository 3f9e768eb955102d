"""What any tool's log comes to."""

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
    """A task of ours that a log is about. `category` tells which rows are its own, where a log holds several tasks'
    rows: those with this text in their column "category", numbered among themselves."""

    suite: str
    task: str
    category: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of a log: its number in the published split and the answer to it, whose task is still to be told.

    `place` is for sentences: "line 17". `row` is the tool's copy of the row.
    """

    place: str
    item: int
    answer: ImportedAnswer
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """One task's run. `shots` is None where the log does not tell; `mode` a word of `services.words.enums.MODES`.

    `prompt_hash` tells the tool's prompt templates apart; empty where the log does not tell. `samples` reads the file
    anew at each call and raises InvalidError for an invalid line. `models` are the models that the log names; the run's
    model is taken from them if it names one.
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
