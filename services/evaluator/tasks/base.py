"""What a task is. A task is a pure function of (task, version, seed, item): any cut of its items into units
gives the same items and the same scores.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from touchstone.v1 import item_result_pb2, suite_pb2


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Item:
    """One example, ready to be sent and scored.

    `index` is the row in the published split and the item's key. `reference` has the form that extraction yields:
    a label's text for classes, a decimal number for regression. `fields` are the row's texts by column, for
    baselines that look at words and not at a prompt. `choices` are the continuations scored in log-likelihood mode.
    """

    index: int
    messages: tuple[Message, ...]
    reference: str
    hash: str
    prompt_hash: str
    fields: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    context: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """What came back for an item. Token counts are the provider's, 0 when it does not tell; latency in ms.

    `refused` and `input_truncated` are facts of the provider's answer, not of its text. `loglikelihoods` has one
    sum per continuation in log-likelihood mode.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: float = 0.0
    served_model: str = ""
    refused: bool = False
    input_truncated: bool = False
    loglikelihoods: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """How an answer was read. `statistics` as in item_result.proto; `extraction` says in words how."""

    outcome: item_result_pb2.Outcome
    prediction: str
    statistics: Mapping[str, float]
    extraction: str


class Task(Hashable, Protocol):
    """One task of a suite, in one mode, with its data loaded lazily and once per process.

    `labels` are a classification task's classes in the order of the data's integers, empty for regression;
    `scale` is the lowest and highest value of a regression task, None for classification.
    """

    info: suite_pb2.TaskInfo
    labels: tuple[str, ...]
    scale: tuple[float, float] | None
    version: str
    scorer_version: str
    mode: suite_pb2.Mode

    def size(self) -> int:
        """Items in the split that was found; loads the data."""
        ...

    def revision(self) -> str:
        """Hub commit or SHA-256 of what was read."""
        ...

    def prompt_hash(self) -> str:
        """Hash of the prompt template, equal for all items."""
        ...

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        """The items with these row numbers, in this order. Blocking; call it in a thread."""
        ...

    def train(self) -> Sequence[Item]:
        """Items of the train split, for baselines and few-shot examples. Empty when there is none."""
        ...

    def answer(self, label: str) -> str:
        """The text that a perfect model would write to give this label (same form as `Item.reference`)."""
        ...

    def score(self, item: Item, response: Response) -> Scored:
        """Pure: the same item and response give the same result in every process."""
        ...
