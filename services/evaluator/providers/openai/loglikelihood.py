"""Log-likelihoods of given texts through `/completions` with `echo`, from servers that passed the proof.

One call per item: the context, and the context with each choice after it, as one batch of prompts; `echo` gives the
prompts' own tokens with their log-probabilities, and nothing is generated. The tokens of a choice are those after as
many as the context alone has, and spaces at the context's end belong to the choice: both are lm_eval's rules (0.4.13,
`TemplateLM._encode_pair`), so that numbers compare. Nothing is added to the texts; whether a BOS token comes first is
up to the server's tokenizer.
"""

from __future__ import annotations

import asyncio
import math

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Continuation, Response
from services.evaluator.providers.openai import errors, wire
from services.evaluator.providers.openai.completions import PATH, Completions, Tokens
from services.evaluator.providers.openai.loglikelihood_proof import echoing, prove
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.sampling import extra, recorded
from services.evaluator.providers.protocol.transport import Transport
from services.evaluator.providers.protocol.usage import Told

_WRITTEN = ("model", "prompt", "echo", "logprobs", "max_tokens", "temperature", "stream", "n")


class LogLikelihoods:
    """The log-likelihoods of one endpoint. A model is proved once per process, before its first answer."""

    def __init__(self, endpoint: Endpoint, http: Transport) -> None:
        self._endpoint = endpoint
        self._completions = Completions(endpoint, http)
        self._lock = asyncio.Lock()
        self._proved: dict[str, int] = {}

    async def score(self, request: Request) -> Response:
        """The item's choices. Raises ProviderError, a fatal one if the proof fails."""
        model, item = request.model, request.item
        context = item.context.rstrip()
        if not context:
            raise ProviderError(
                f"{self._endpoint.name} cannot score choices without a context before them. Run in generate mode.",
                fatal=True,
            )
        further = extra(request.sampling, _WRITTEN)
        if model not in self._proved:
            async with self._lock:
                if model not in self._proved:
                    self._proved[model] = await prove(self._completions, model, further)
        written = self._proved[model]
        beside = {**echoing(written), **further}
        prompts = [context, *(item.context + choice for choice in item.choices)]
        reply = await self._completions.post(model, prompts, beside)
        if reply.status != 200:
            return errors.refusal(self._endpoint, reply, model, recorded(beside), PATH)
        alone, *whole = (tokens.without_last(written) for tokens in self._completions.tokens(reply, len(prompts)))
        usage, told = reply.body.get("usage"), Told()
        return Response(
            "",
            finish_reason="stop",
            input_tokens=told.tokens(usage, "prompt_tokens"),
            output_tokens=told.tokens(usage, "completion_tokens"),
            latency_ms=reply.latency_ms,
            served_model=wire.text(reply.body.get("model")),
            continuations=tuple(
                self._continuation(choice, tokens, len(alone))
                for choice, tokens in zip(item.choices, whole, strict=True)
            ),
            parameters=recorded(beside),
        )

    def _continuation(self, choice: str, tokens: Tokens, start: int) -> Continuation:
        values = [value for value in tokens.values[start:] if value is not None]
        if not values or len(values) < len(tokens) - start:
            # Summing only the existing values would make such a choice the likeliest.
            raise ProviderError(f"{self._endpoint.name} returned no log-likelihood for the choice {choice.strip()!r}.")
        return Continuation(choice, math.fsum(values), len(values), tokens.greedy(start))
