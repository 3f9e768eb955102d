"""The most that an answer may cost: what a job with a budget reserves for each call before it goes out.

A token has at least one byte of UTF-8, so that a prompt's bytes bound its tokens, with room for what a chat template
adds. The answer is bounded by max_tokens, which counts the reasoning of models that think. What would break either
bound is refused: a hard budget that holds sometimes is none.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.errors import InvalidRequestError
from services.evaluator.providers import prices
from services.evaluator.providers.anthropic_wire import DEFAULT_MAX_TOKENS
from services.evaluator.providers.recorded import recorded
from services.evaluator.providers.sampling import extra
from services.evaluator.tasks.base import Message
from touchstone.v1 import endpoint_pb2, job_pb2

_FIELD = "budget_usd"
_TEMPLATE_TOKENS = 256
"""Around all messages: a default system prompt with its date is the longest, at about a hundred."""
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
"""Further provider fields that neither lengthen an answer past its limit nor ask for several, for a dearer service or
for tools that cost of their own."""


class MostCost:
    """Of answers of one model at its known prices, in US dollars."""

    def __init__(
        self, spec: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint, known: endpoint_pb2.Prices | None
    ) -> None:
        """Raises InvalidRequestError where no price is known, or a prompt has no bound."""
        self._free = endpoint.kind == "baseline"
        self._usual = DEFAULT_MAX_TOKENS if endpoint.kind == "anthropic" else 0
        if endpoint.kind == "http":
            raise InvalidRequestError(
                f"{spec.endpoint} is an application: what it adds to a prompt, and so what an answer may cost, is not "
                "known. Leave budget_usd out.",
                _FIELD,
            )
        if not self._free and known is None:
            raise InvalidRequestError(
                f"The prices of {spec.model} at {spec.endpoint} are not known, so no budget can be kept. Set prices in "
                "the endpoints file, or leave budget_usd out.",
                _FIELD,
            )
        self._prices = known or endpoint_pb2.Prices()
        self._share = prices.batch_share(known) if spec.provider_batch else 1.0

    def written(self, messages: Iterable[Message], sampling: job_pb2.Sampling) -> float:
        """Of an answer to these messages. Raises InvalidRequestError where nothing bounds it."""
        if self._free:
            return 0.0
        further = extra(sampling, ())
        for name in sorted(further.keys() - _HARMLESS):
            raise InvalidRequestError(
                f"What an answer costs with {name} has no known bound. Leave it out of the parameters, or leave "
                "budget_usd out.",
                f"sampling.extra_json.{name}",
            )
        limit = sampling.max_tokens if sampling.HasField("max_tokens") else self._usual
        if not limit:
            raise InvalidRequestError(
                "A budget needs max_tokens: without it nothing bounds what an answer may cost. Set it in the job's "
                "parameters, with room for the thinking of a model that reasons.",
                "sampling.max_tokens",
            )
        read = _TEMPLATE_TOKENS + (len(recorded(further).encode()) if further else 0)
        for message in messages:
            read += _MESSAGE_TOKENS + _bytes(message.role) + _bytes(message.content)
        return self._usd(read, limit)

    def scored(self, context: str, continuations: Iterable[str]) -> float:
        """Of log-likelihoods: the context alone and before each continuation, one token generated at most for each."""
        prompts = [context, *(context + continuation for continuation in continuations)]
        read = sum(_MESSAGE_TOKENS + _bytes(prompt) for prompt in prompts)
        return 0.0 if self._free else self._usd(read, len(prompts))

    def _usd(self, read: int, written: int) -> float:
        """The dearer of the prices that prompts of up to `read` tokens have."""
        rates = zip(prices.per_million(self._prices, 0), prices.per_million(self._prices, read), strict=True)
        per_input, per_output = (max(pair) for pair in rates)
        return (read * per_input + written * per_output) * self._share / 1e6


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
