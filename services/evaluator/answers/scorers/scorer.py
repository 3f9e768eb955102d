"""The interface of scorers of uploaded rows: how each takes a right answer, reads a response and compares the two.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.prose.cleaning import strip_reasoning
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.reading.text import TextKind
from services.words.scorers import OF_FIELD
from touchstone.v1.content_pb2 import ToolCall
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.suite_pb2 import MetricSpec

WHOLE = "whole response"
_MOST_CHARACTERS = 120
_MOST_SHOWN = 256
_MOST_BYTES = 16 * 1024
"""Names of fields in one item result, which must fit into a message."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response and what it answers. `cut`: the token limit ended it. `prompt`: the last message of the user, empty
    if unknown. `calls`: the tool calls, in the model's order."""

    text: str
    cut: bool = False
    prompt: str = ""
    calls: tuple[ToolCall, ...] = ()


Read = Callable[[Reply], Extraction]
"""The answer in a reply."""
ReadFirst = Callable[[Reply], Extraction | None]
"""The same as if the first of several answers counted; None where there are not several."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """`version` changes with anything that moves a score.

    `right` makes a right answer out of its JSON value, in the form that `read` gives; it raises ValueError, with a
    clause that continues after "the reference", for a value that it cannot compare with. `judge` gives the answer's
    statistics against all right ones; the best counts, and each is 0 where nothing was read. `statistics` are their
    names. `layer` is the most lenient layer by which an answer is read, None for scorers without layers. `first` is
    None where the first of several answers counts anyway. `several` gives the right answers in a reference that is not
    null; usually those in a list, or the value itself. `unread` gives further statistics of an answer that could not be
    read, by the right ones. `calls` gives the tool calls that a right answer consists of, None where it is a text.
    `own` gives what a row has in place of its reference; `json_values.NOTHING` where the reference counts. Rows with
    the same `group` depend on each other, unless it is empty: intervals are clustered by it. Without
    `counts_unread`, an answer that cannot be read has no statistics and moves no score.

    A plug-in's scorer has a `title`, which pages show. It is called in threads of `executor`, as its package may take
    long. `plugin` is its package with the version: "touchstone-example 1.0".
    """

    name: str
    version: str
    metrics: tuple[MetricSpec, ...]
    statistics: tuple[str, ...]
    right: Callable[[Any], str]
    read: Read
    judge: Callable[[str, Sequence[str]], Mapping[str, float]]
    layer: Layer | None = None
    first: ReadFirst | None = None
    several: Callable[[Any], Sequence[Any]] | None = None
    unread: Callable[[Sequence[str]], Mapping[str, float]] | None = None
    calls: Callable[[str], tuple[ToolCall, ...]] | None = None
    own: Callable[[DatasetRow], Any] | None = None
    group: Callable[[DatasetRow], str] | None = None
    counts_unread: bool = True
    title: str = ""
    plugin: str = ""
    executor: Executor | None = None

    def missed(self, answers: Sequence[str]) -> dict[str, float]:
        """The statistics of an answer that could not be read."""
        if not self.counts_unread:
            return {}
        more = self.unread(answers) if self.unread is not None else {}
        return {**dict.fromkeys(self.statistics, 0.0), **more}


def whole(reply: Reply) -> Extraction:
    """The whole response without its reasoning."""
    answer = strip_reasoning(reply.text).strip()
    return Extraction(answer, WHOLE if answer else "none: the response is empty")


def stated(layer: Layer) -> Read:
    """Takes the stated answer of the response ("Answer: …", `\\boxed{…}` and similar), else all of it."""
    reader = AnswerReader(most=layer)

    def read(reply: Reply) -> Extraction:
        found = reader(reply.text, TextKind(cut=reply.cut))
        return found if found.answer and found.how != layers.WHOLE_RESPONSE else whole(reply)

    return read


def as_text(value: Any) -> str:
    """A text, number or Boolean, as a model would write it. Raises ValueError for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value!r}".removesuffix(".0")
    if not isinstance(value, str):
        raise ValueError("is not a text, number or Boolean; use the json scorer for such rows")
    if not value.strip():
        raise ValueError("is empty; leave it out")
    return value


def mean(metric: str, statistic: str) -> MetricSpec:
    """The mean of a statistic over items."""
    return MetricSpec(metric=metric, rule=MetricSpec.RULE_MEAN, statistic=statistic)


def by_field(judged: Iterable[tuple[str, float]]) -> dict[str, float]:
    """How the fields of one answer were judged, as statistics of its item: the mean of each over its values, which
    are 0 to 1. Long names are cut. Fields without a name, and those beyond 16 KB of names, are left out."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    left = _MOST_BYTES
    for name, value in judged:
        if not name:
            continue
        key = OF_FIELD + _shown(name)
        if key not in sums:
            left -= len(key.encode())
            if left < 0:
                break
            sums[key], counts[key] = 0.0, 0
        sums[key] += value
        counts[key] += 1
    return {key: total / counts[key] for key, total in sums.items()}


@lru_cache(maxsize=_MOST_SHOWN)
def _shown(name: str) -> str:
    cut = name if len(name) <= _MOST_CHARACTERS else f"{name[: _MOST_CHARACTERS - 1]}…"
    # Messages and the database hold neither half characters nor NUL.
    return cut.encode("utf-8", "replace").decode().replace("\0", "?")
