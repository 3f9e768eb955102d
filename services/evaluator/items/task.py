"""What a task is. A task is a pure function of (task, version, seed, item): however its items are cut into units, they
and their scores are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from services.evaluator.answers.reading.layers import Layer
from services.words import chat
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2
from touchstone.v1.content_pb2 import TokenLogprob, ToolCall
from touchstone.v1.dataset_pb2 import ChatMessage


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `role` is "system", "user" or "assistant"; in uploaded rows also "tool". `more` is the row's
    message where it holds more than `content`: images, tool calls, or the call that it is the result of."""

    role: str
    content: str
    more: ChatMessage | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One example, ready to be sent and scored.

    `index` is the row in the published split and the item's key. `reference` has the form of an extracted answer: a
    label's text for classes, a decimal number for regression. `fields` are the row's texts by column, for baselines
    that look at words instead of a prompt. `group` gathers items that share a passage. In log-likelihood mode the
    `choices` are scored as continuations of `context`, and `messages` is empty. `stop` ends a generated answer.
    `labels` are the answers that this item offers if they differ from the task's. `answers` are all right ones if there
    are several; `reference` is the first. `statistics` are numbers of the row that every result carries, such as the
    question that answers belong to.

    For uploaded rows: `custom_id` is the row's own id, `metadata` its JSON object as stored with the answer. `sampling`
    is this item's sampling if it differs from the job's, with absent fields filled in from the job's. `further_answers`
    are the right answers of each further scorer.
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
    stop: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)
    custom_id: str = ""
    metadata: str = ""
    sampling: job_pb2.Sampling | None = None
    further_answers: tuple[tuple[str, ...], ...] = ()

    @property
    def question(self) -> str:
        """The last message of the user, which the answer is read with; empty in log-likelihood mode."""
        asked = next((message for message in reversed(self.messages) if message.role == "user"), Message("user", ""))
        return asked.content if asked.more is None else chat.text(asked.more)


@dataclass(frozen=True, slots=True)
class Continuation:
    """A scored choice: natural logarithm of its probability after the context, summed over its `tokens`.

    `greedy`: every token was the most probable one.
    """

    text: str
    loglikelihood: float
    tokens: int
    greedy: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to an item. Token counts are the provider's, None when it gives none; times are in ms.

    `refused` and `input_truncated` are facts of the provider's answer, not of its text. `continuations` has one entry
    per choice, in their order, in log-likelihood mode. `parameters` is what the request carried apart from the prompt,
    as JSON. `cost_usd` is None where no price is known. `ttft_ms` is 0 for an answer that was not streamed.
    `reasoning_tokens` are part of `output_tokens`. `note` is what the provider adds, such as why it refused. `doubtful`
    names impossible numbers in the answer, with their values; they count as unknown. `tool_calls` are in
    the model's order; `logprobs` are set where they were requested.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_ms: float = 0.0
    served_model: str = ""
    refused: bool = False
    input_truncated: bool = False
    continuations: tuple[Continuation, ...] = ()
    parameters: str = ""
    ttft_ms: float = 0.0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    note: str = ""
    doubtful: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """How an answer was read. `statistics` are those of item_result.proto; `extraction` says in words how."""

    outcome: item_result_pb2.Outcome
    prediction: str
    statistics: Mapping[str, float]
    extraction: str


class Task(Hashable, Protocol):
    """One task of a suite, in one mode, with its data loaded lazily and once per process.

    `labels` are a classification task's classes in the order of the data's integers, empty for other tasks; `scale` is
    the lowest and highest value of a regression task, None for other tasks. `metrics` are those of this mode, the
    primary one first. `reading` is the most lenient layer by which answers are read, None if the scorer does not read
    text, or has its own rules. `plugin` is the package that the task comes from, with its version, and
    `executor` has the threads that may call it; empty and None for built-in tasks. `grouped`: items may have a `group`.
    """

    info: suite_pb2.TaskInfo
    metrics: tuple[suite_pb2.MetricSpec, ...]
    shots: int
    labels: tuple[str, ...]
    scale: tuple[float, float] | None
    version: str
    scorer_version: str
    reading: Layer | None
    mode: suite_pb2.Mode
    plugin: str
    executor: Executor | None
    grouped: bool

    def size(self) -> int:
        """The number of items in the split; loads the data."""
        ...

    def revision(self) -> str:
        """Hub commit or SHA-256 of what was read."""
        ...

    def prompt_hash(self) -> str:
        """Hash of the prompt template with its fixed few-shot examples, equal for all items."""
        ...

    def hashes(self, indexes: Sequence[int]) -> Iterator[str]:
        """`Item.hash` of the items with these row numbers, without rendering prompts: some microseconds per item."""
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
