"""OpenAI's `/completions` with log-probabilities: a batch of prompts, and what the answer says about each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.protocol import failures
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import count, entries

PATH = "/completions"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one choice. `values` are natural logarithms of their probabilities, None where the server gives no
    possible value; `tops` the most probable tokens at each place with theirs, empty where there are none.
    """

    texts: tuple[str, ...]
    values: tuple[float | None, ...]
    tops: tuple[Mapping[str, float], ...]

    @classmethod
    def read(cls, choice: Mapping[str, Any]) -> Tokens | None:
        """None when the choice carries no log-probabilities in this format."""
        found = choice.get("logprobs")
        if not isinstance(found, dict):
            return None
        texts, values, tops = (found.get(key) for key in ("tokens", "token_logprobs", "top_logprobs"))
        if not isinstance(texts, list) or not isinstance(values, list) or len(texts) != len(values):
            return None
        if not isinstance(tops, list) or len(tops) != len(texts):
            tops = [None] * len(texts)
        return cls(
            tuple(text if isinstance(text, str) else "" for text in texts),
            tuple(map(_log_probability, values)),
            tuple(_log_probabilities(top) for top in tops),
        )

    def __len__(self) -> int:
        return len(self.texts)

    def without_last(self, tokens: int) -> Tokens:
        end = len(self.texts) - tokens
        return Tokens(self.texts[:end], self.values[:end], self.tops[:end])

    def greedy(self, start: int) -> bool:
        """Whether every token from `start` on was the most probable one, as far as the server says."""
        pairs = zip(self.values[start:], self.tops[start:], strict=True)
        return all(top and value is not None and value >= max(top.values()) for value, top in pairs)


def _log_probability(value: object) -> float | None:
    return numbers.real(value, numbers.LEAST_LOG_PROBABILITY, numbers.MOST_LOG_PROBABILITY)


def _log_probabilities(top: object) -> dict[str, float]:
    found = {text: _log_probability(value) for text, value in top.items()} if isinstance(top, dict) else {}
    return {text: value for text, value in found.items() if value is not None}


class Completions:
    """One endpoint's."""

    def __init__(self, endpoint: Endpoint, http: Transport) -> None:
        self.endpoint = endpoint
        self._http = http

    async def post(self, model: str, prompts: Sequence[str], beside: Mapping[str, Any]) -> Reply:
        """Raises ProviderError when no answer comes."""
        return await self._http.post(PATH, {"model": model, "prompt": list(prompts), **beside})

    def tokens(self, reply: Reply, prompts: int) -> list[Tokens]:
        """One entry per prompt, in their order. Raises a retryable ProviderError when the answer lacks one."""
        body = reply.body
        if not isinstance(body, dict):
            raise failures.cut_short(self.endpoint)
        if body.get("error"):
            raise failures.failed_midway(self.endpoint, reply.error_text)
        found = {count(choice, "index"): choice for choice in entries(body, "choices")}
        if set(found) != set(range(prompts)):
            raise failures.lacking(self.endpoint, "a choice for every prompt")
        read = [Tokens.read(found[place]) for place in range(prompts)]
        whole = [tokens for tokens in read if tokens is not None]
        if len(whole) < prompts:
            raise failures.lacking(self.endpoint, "log-probabilities")
        return whole
