"""The interface of scorers of uploaded rows: how each takes a right answer, reads a response and compares the two.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.prose.cleaning import strip_reasoning
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.reading.text import TextKind
from touchstone.v1.suite_pb2 import MetricSpec

WHOLE = "whole response"


@dataclass(frozen=True, slots=True)
class Reply:
    """A response and what it answers. `cut`: the token limit ended it. `prompt`: the last message of the user, empty
    if unknown."""

    text: str
    cut: bool = False
    prompt: str = ""


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
    None where the first of several answers counts anyway.

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
    title: str = ""
    plugin: str = ""
    executor: Executor | None = None


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
