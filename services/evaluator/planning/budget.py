"""Additions to the plan of a job with a budget: the most that one answer may cost, and units that reserve little.

A token has at least one byte of UTF-8, so that a prompt's bytes bound its tokens, with room for what a chat template
adds. An image is bounded by its size in pixels and the provider's rule. The answer is bounded by max_tokens, which
counts the reasoning of models that think. Anything that would break a bound is refused, as a hard budget must always
hold.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Message
from services.evaluator.provider_batches.planning import affordable_rows
from services.evaluator.providers.anthropic_wire import DEFAULT_MAX_TOKENS
from services.evaluator.providers.pricing import image_tokens, prices
from services.evaluator.providers.protocol import common_form
from services.evaluator.providers.protocol.sampling import extra, recorded
from services.words import refusals
from services.words.watches import canary_rows
from touchstone.v1 import endpoint_pb2, job_pb2, suite_pb2

_UNIT_ITEMS = 4
_UNIT_SHARE = 0.02
"""The share of the budget that a unit may reserve: the last units then come close to the budget."""
_NEARLY_FREE_USD = 1e-9
"""The cost of an answer at a price of 0: in a plan, 0 means unknown."""

_FIELD = "budget_usd"
_TEMPLATE_TOKENS = 256
"""Around all messages: a default system prompt with its date is the longest, at about a hundred."""
_TOOLS_TOKENS = 1024
"""What a chat template adds to the tools themselves; Anthropic's adds some hundreds of tokens."""
_MESSAGE_TOKENS = 16
"""Around each message: its role and marks."""
_HARMLESS = frozenset(
    (
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "min_p", "top_a", "top_k"),
        *("logprobs", "top_logprobs", "response_format", "reasoning_effort", "verbosity", "user", "metadata", "store"),
        *("seed", "stop", "stop_token_ids", "guided_json", "guided_regex", "guided_choice", "structured_outputs"),
        *("thinking", "think", "format", "thinkingBudget", "thinkingLevel", "includeThoughts", "responseMimeType"),
        *("responseSchema", "safetySettings", "temperature", "top_p", "topP", "topK", "safety_identifier"),
    )
)
"""Further provider fields that do not lengthen an answer past its limit or ask for several answers, a more expensive
service or tools with their own price."""


def reserve(spec: job_pb2.JobSpec, planned: job_pb2.TaskPlan, most_usd: float) -> None:
    """Notes the most that an answer of the task may cost, and makes its units small. Raises InvalidRequestError for a
    budget that is too small for one call."""
    if most_usd > spec.budget_usd:
        raise InvalidRequestError(
            f"One answer may cost up to {dollars(most_usd)}, more than the whole budget of "
            f"{dollars(spec.budget_usd)}. Raise the budget, or lower max_tokens.",
            "budget_usd",
        )
    planned.most_cost_usd = max(most_usd, _NEARLY_FREE_USD)
    if spec.provider_batch:
        planned.unit_size = affordable_rows(planned.unit_size, spec.budget_usd, most_usd)
        return
    affordable = int(_UNIT_SHARE * spec.budget_usd / most_usd) if most_usd else planned.unit_size
    planned.unit_size = max(1, min(planned.unit_size, _UNIT_ITEMS, affordable))


def reserve_suite(
    spec: job_pb2.JobSpec, plans: list[job_pb2.TaskPlan], catalogue: Catalogue, most_cost: MostCost
) -> None:
    """`reserve` for every task of a suite, by its most expensive item. Reads and renders all of them; blocking. Raises
    InvalidRequestError."""
    work = spec.suite
    for planned in plans:
        task = catalogue.task_of(spec, planned.task)
        rows = canary_rows(spec)
        chosen = rows[planned.task] if rows else catalogue.selection(task, work.limit, work.seed).indexes
        scored = task.mode == suite_pb2.MODE_LOGLIKELIHOOD
        costs = (
            most_cost.scored(item.context, item.choices) if scored else most_cost.written(item.messages, spec.sampling)
            for item in task.items(chosen)
        )
        reserve(spec, planned, max(costs, default=0.0))


def dollars(amount: float) -> str:
    """In words."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.6f}".rstrip("0").ljust(5, "0")


class MostCost:
    """The cost of answers of one model at its known prices, in US dollars."""

    def __init__(
        self, spec: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint, known: endpoint_pb2.Prices | None
    ) -> None:
        """Raises InvalidRequestError if no price is known, or a prompt has no bound."""
        self._free = endpoint.kind == "baseline"
        self._model = endpoint.kind, spec.model
        self._usual = DEFAULT_MAX_TOKENS if endpoint.kind == "anthropic" else 0
        if endpoint.kind == "http":
            raise InvalidRequestError(
                f"{spec.endpoint} is an application that may add to prompts, so the cost of an answer is unknown. "
                "Leave budget_usd out.",
                _FIELD,
            )
        if not self._free and known is None:
            raise InvalidRequestError(refusals.prices_unknown(spec.endpoint, spec.model), _FIELD)
        self._prices = known or endpoint_pb2.Prices()
        self._share = prices.batch_share(known) if spec.provider_batch else 1.0

    def written(self, messages: Iterable[Message], sampling: job_pb2.Sampling) -> float:
        """The cost of an answer to these messages. Raises InvalidRequestError if nothing bounds it."""
        if self._free:
            return 0.0
        further = extra(sampling, ())
        # Functions cost what is read and written; tools that run at the provider have a price too.
        unbounded = dict(further)
        common_form.take(unbounded)
        for name in sorted(unbounded.keys() - _HARMLESS):
            raise InvalidRequestError(
                f"With {name}, the cost of an answer has no known limit. Remove it from the parameters, or leave "
                "budget_usd out.",
                f"sampling.extra_json.{name}",
            )
        limit = sampling.max_tokens if sampling.HasField("max_tokens") else self._usual
        if not limit:
            raise InvalidRequestError(
                "A budget needs max_tokens, which limits the cost of an answer. Set it in the job's parameters, "
                "with room for reasoning.",
                "sampling.max_tokens",
            )
        read = _TEMPLATE_TOKENS + (len(recorded(further).encode()) if further else 0)
        if common_form.take(further).functions:
            read += _TOOLS_TOKENS
        for message in messages:
            read += _MESSAGE_TOKENS + _bytes(message.role) + _bytes(message.content)
            if message.more is not None:
                read += _more(message) + self._images(message)
        return self._usd(read, limit)

    def _images(self, message: Message) -> int:
        """The most tokens of a message's images. Raises InvalidRequestError for one that does not tell its size."""
        assert message.more is not None
        total = 0
        for part in message.more.parts:
            if part.HasField("image"):
                tokens = image_tokens.most_tokens(*self._model, part.image.data)
                if tokens is None:
                    raise InvalidRequestError(
                        "The size of an image cannot be read from its file, so the cost of an answer has no known "
                        "limit. Replace the image, or leave budget_usd out.",
                        _FIELD,
                    )
                total += tokens
        return total

    def scored(self, context: str, continuations: Iterable[str]) -> float:
        """The cost of log-likelihoods: the context alone and before each continuation, with at most one generated token
        for each."""
        prompts = [context, *(context + continuation for continuation in continuations)]
        read = sum(_MESSAGE_TOKENS + _bytes(prompt) for prompt in prompts)
        return 0.0 if self._free else self._usd(read, len(prompts))

    def _usd(self, read: int, written: int) -> float:
        """The highest price of prompts of up to `read` tokens."""
        rates = zip(prices.per_million(self._prices, 0), prices.per_million(self._prices, read), strict=True)
        per_input, per_output = (max(pair) for pair in rates)
        return (read * per_input + written * per_output) * self._share / 1e6


def _more(message: Message) -> int:
    """The most tokens of what a message holds in addition to its text and its images."""
    more = message.more
    assert more is not None
    calls = sum(
        _MESSAGE_TOKENS + _bytes(call.id) + _bytes(call.name) + _bytes(call.arguments) for call in more.tool_calls
    )
    return calls + _bytes(more.tool_call_id) + _bytes(more.name)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
