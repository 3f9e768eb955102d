"""The proof that a server's echoed log-probabilities belong to the tokens that they are given with.

Some servers echo nothing, shift the values by one token (llama-cpp-python), or leave out what a cache held. So a model
is asked to continue known texts, with the log-probabilities of its first choices; then the known texts are echoed with
these choices appended. Each echoed value must be the one that generation gave.

How close they must be. Generation and echo run different kernels: in bfloat16, logits near 20 are 0.125 apart, so that
single values differ by a few steps of that; a value of another token differs by nats. Hence two bounds: no value off by
more than half a nat, and the squared differences at most 1 % of the values' own variance. The second bound catches a
model for which everything is nearly equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.providers.openai import errors
from services.evaluator.providers.openai.completions import PATH, Completions, Tokens
from services.evaluator.providers.protocol.provider import ProviderError, no_loglikelihood

KNOWN = (
    "The capital of France is Paris, and the capital of Italy is",
    "One, two, three, four, five, six,",
    "She opened the door, looked around the empty room and",
    "Water freezes at zero degrees and boils at",
)
_WRITTEN_TOKENS = 4
_ALTERNATIVES = 5
_LEAST_PAIRS = 4
_MOST_APART = 0.5
_LEAST_EXPLAINED = 0.99
_LEAST_VARIANCE = 1e-6
# How tokenizers that show their raw tokens write a space and a line break.
_MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})

Pairs = Sequence[tuple[float, float]]


def echoing(max_tokens: int) -> dict[str, Any]:
    """The fields that request an echo. `max_tokens` is 0, or 1 for servers that refuse 0: its token is then dropped."""
    return {"echo": True, "logprobs": 1, "max_tokens": max_tokens, "temperature": 0}


async def prove(completions: Completions, model: str, further: Mapping[str, Any]) -> int:
    """The `max_tokens` with which the server's echo was right. `further` are fields that every call carries.

    Raises a fatal ProviderError saying what differed; a retryable one where the server did not answer.
    """
    proof = _Proof(completions, model, further)
    try:
        written = await proof.write()
        try:
            return await proof.echo(written, 0)
        except _NotProvedError:
            return await proof.echo(written, 1)
    except _NotProvedError as error:
        raise ProviderError(
            f"The log-likelihoods of {completions.endpoint.name} cannot be trusted: {error}. Run in generate mode, "
            "or use vLLM with prefix caching off.",
            fatal=True,
        ) from error


class _NotProvedError(Exception):
    """What differed, as a part of a sentence."""


class _Proof:
    def __init__(self, completions: Completions, model: str, further: Mapping[str, Any]) -> None:
        self._completions = completions
        self._model = model
        self._further = further

    async def write(self) -> list[Tokens]:
        """The model's continuation of each known text."""
        beside = {"logprobs": _ALTERNATIVES, "max_tokens": _WRITTEN_TOKENS, "temperature": 0}
        written = await self._ask(KNOWN, beside)
        if not any(tokens.values for tokens in written):
            raise _NotProvedError("it wrote nothing after the known texts")
        return written

    async def echo(self, written: Sequence[Tokens], max_tokens: int) -> int:
        prompts = list(KNOWN)
        for known, tokens in zip(KNOWN, written, strict=True):
            prompts += [known + text for text in _continuations(tokens)]
        beside = echoing(max_tokens)
        first = self._checked(prompts, await self._ask(prompts, beside), max_tokens)
        echoes = dict(zip(prompts, first, strict=True))
        pairs: list[tuple[float, float]] = []
        for known, tokens in zip(KNOWN, written, strict=True):
            pairs += _pairs(echoes, known, tokens)
        if len(pairs) < _LEAST_PAIRS:
            raise _NotProvedError("too few of the generated tokens came back in the echo")
        _demand_agreement(pairs, "echoed values differ from those of generation")
        backwards = prompts[::-1]
        second = self._checked(backwards, await self._ask(backwards, beside), max_tokens)[::-1]
        again = [
            (one, other)
            for before, after in zip(first, second, strict=True)
            for one, other in zip(before.values, after.values, strict=True)
            if one is not None and other is not None
        ]
        _demand_agreement(again, "values change with the order of a batch")
        return max_tokens

    async def _ask(self, prompts: Sequence[str], beside: Mapping[str, Any]) -> list[Tokens]:
        endpoint = self._completions.endpoint
        reply = await self._completions.post(self._model, prompts, {**beside, **self._further})
        if reply.status in (404, 405, 501) and not errors.is_model_missing(reply):
            raise no_loglikelihood(endpoint.name)
        if reply.status != 200:
            if reply.status not in (400, 422) or errors.is_key_refused(reply):
                raise errors.failure(endpoint, reply, self._model, PATH)
            said = reply.error_text or f"status {reply.status}"
            raise _NotProvedError(f"it refuses to echo with log-probabilities ({said})")
        try:
            return self._completions.tokens(reply, len(prompts))
        except ProviderError as error:
            # Not a fault of this call alone: the next one would lack the same.
            raise _NotProvedError("it sends no log-probabilities for each prompt of a batch") from error

    def _checked(self, prompts: Sequence[str], echoed: Sequence[Tokens], written: int) -> list[Tokens]:
        """The echoes, checked against their prompts, without the token that had to be generated."""
        echoes = [tokens.without_last(written) for tokens in echoed]
        for prompt, echo in zip(prompts, echoes, strict=True):
            # After a BOS token, if the tokenizer adds one.
            if not _bare("".join(echo.texts)).endswith(_bare(prompt)):
                raise _NotProvedError("the echoed tokens are not those of the prompt")
            if echo.values[0] is not None:
                raise _NotProvedError("the first token has a value although nothing precedes it")
            if None in echo.values[1:]:
                raise _NotProvedError("a token within the prompt has no value")
        return echoes


def _continuations(tokens: Tokens) -> list[str]:
    """The alternatives at the first place and the whole generated text, as texts to append."""
    first = [_plain(text) for text in tokens.tops[0]] if tokens.tops else []
    texts = dict.fromkeys([*first, _plain("".join(tokens.texts))])
    return [text for text in texts if text.strip() and text.isascii() and text.isprintable()]


def _pairs(echoes: Mapping[str, Tokens], known: str, tokens: Tokens) -> Pairs:
    """Generation's value and the echoed one for each token that the tokenizer finds again in the text."""
    start = len(echoes[known])
    pairs: list[tuple[float, float]] = []
    for text, value in tokens.tops[0].items() if tokens.tops else ():
        echo = echoes.get(known + _plain(text))
        if echo is not None and len(echo) == start + 1 and _plain(echo.texts[start]) == _plain(text):
            pairs.append((value, _number(echo.values[start])))
    echo = echoes.get(known + _plain("".join(tokens.texts)))
    if echo is None:
        return pairs
    for place, (text, given) in enumerate(zip(tokens.texts, tokens.values, strict=True), start):
        if place >= len(echo) or _plain(echo.texts[place]) != _plain(text) or given is None:
            break
        pairs.append((given, _number(echo.values[place])))
    return pairs


def _demand_agreement(pairs: Pairs, otherwise: str) -> None:
    given = [one for one, _ in pairs]
    mean = sum(given) / len(given)
    variance = sum((value - mean) ** 2 for value in given) / len(given)
    if variance < _LEAST_VARIANCE:
        raise _NotProvedError("all of its values are equal")
    worst = max(pairs, key=lambda pair: abs(pair[0] - pair[1]))
    unexplained = sum((one - other) ** 2 for one, other in pairs) / len(pairs) / variance
    if not (abs(worst[0] - worst[1]) <= _MOST_APART and unexplained <= 1 - _LEAST_EXPLAINED):
        raise _NotProvedError(f"{otherwise} (for one token {worst[0]:.3f} and {worst[1]:.3f})")


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _plain(text: str) -> str:
    return text.translate(_MARKS)


def _bare(text: str) -> str:
    return "".join(_plain(text).split())
