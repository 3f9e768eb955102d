"""A stub of vLLM: OpenAI's protocol, `/completions` with `echo` over a toy model, health, version and tokenizer.

The toy model's tokens are words with the space before them. The log-probability of a token depends on the two before
it by a hash, so that every text has one and no two places look alike. `lie` makes it answer as servers do that cannot
be trusted with log-likelihoods.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any

from aiohttp import web

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, arguments, run

WORDS = ("Rome", "seven", "was", "one", "the", "green", "nobody", "hundred", "quick", "paper", "low", "tide")
LIES = (
    "shifted", "no echo", "no log-probabilities", "a first value", "a hole", "batch order", "other temperature",
    "alike", "one prompt only", "refuses",
)  # fmt: skip


def tokens_of(text: str) -> list[str]:
    return re.findall(r" ?\w+| ?[^\w\s]+|\s", text)


def value(before: list[str], token: str) -> float:
    """Natural logarithm of the toy probability, from -9 to 0; equal contexts and tokens have equal ones."""
    digest = hashlib.sha256("\x1f".join([*before[-2:], token]).encode()).digest()
    return -9 * int.from_bytes(digest[:4], "big") / 2**32


class VLLMServer(OpenAIServer):
    """`bos` puts a token before every prompt; `least_tokens` of 1 refuses `max_tokens` 0; `noise` is added to echoed
    values, as other kernels do. `default_tokens` makes 0 mean the default, as careless servers do.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour, "vllm")
        self.lie = ""
        self.bos = False
        self.least_tokens = 0
        self.default_tokens = False
        self.noise = 0.0
        self.healthy = True

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.post("/v1/completions", self.generate),
            web.get("/health", self.health),
            web.get("/version", self.version),
            web.post("/tokenize", self.tokenize),
        ]

    async def health(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self.healthy else 503)

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.32.0"})

    async def tokenize(self, request: web.Request) -> web.Response:
        return web.json_response({"count": 1, "max_model_len": 2048, "tokens": [1]})

    def prompt(self, body: dict[str, Any]) -> str:
        return "" if "prompt" in body else super().prompt(body)

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        if "prompt" not in body:
            return super().answer(body, text)
        prompts = [body["prompt"]] if isinstance(body["prompt"], str) else body["prompt"]
        if self.lie == "one prompt only":
            prompts = prompts[:1]
        choices = [self._choice(body, prompt, place) | {"index": place} for place, prompt in enumerate(prompts)]
        read = sum(len(tokens_of(prompt)) for prompt in prompts)
        return {
            "id": "cmpl-1",
            "object": "text_completion",
            "created": 1,
            "model": body["model"],
            "choices": choices[::-1],
            "usage": {"prompt_tokens": read, "completion_tokens": 0, "total_tokens": read},
        }

    async def body(self, request: web.Request) -> dict[str, Any]:
        body = await super().body(request)
        refused = self.lie == "refuses" and body.get("echo")
        if "prompt" in body and (refused or body.get("max_tokens", 16) < self.least_tokens):
            what = "echo is not supported" if refused else "max_tokens must be at least 1"
            self.behaviour.faults.append(Fault("400", message=what))
        return body

    def _choice(self, body: dict[str, Any], prompt: str, place: int) -> dict[str, Any]:
        read = ["<s>"] * self.bos + tokens_of(prompt)
        tokens = list(read)
        wanted = body["max_tokens"] or (16 if self.default_tokens else 0)
        for _ in range(wanted):
            words = (f" {word}" for word in WORDS)
            tokens.append(max(words, key=lambda word: value(tokens, word)))
        echo = body.get("echo") and self.lie != "no echo"
        start = 0 if echo else len(read)
        log_probabilities = self._values(tokens, len(read), place, bool(body.get("echo")))
        tops = [self._top(tokens, index, body["logprobs"], log_probabilities) for index in range(len(tokens))]
        return {
            "text": "".join(tokens[start:]),
            "finish_reason": "length",
            "logprobs": None
            if self.lie == "no log-probabilities"
            else {
                "tokens": tokens[start:],
                "token_logprobs": log_probabilities[start:],
                "top_logprobs": tops[start:],
                "text_offset": [0] * len(tokens[start:]),
            },
        }

    def _values(self, tokens: list[str], read: int, place: int, echo: bool) -> list[float | None]:
        values: list[float | None] = [None, *(value(tokens[:i], tokens[i]) for i in range(1, len(tokens)))]
        if not echo:
            return values
        match self.lie:
            case "shifted":
                values = [None, *(value(tokens[: i + 1], tokens[i]) for i in range(1, len(tokens)))]
            case "a first value":
                values[0] = -1.0
            case "a hole":
                values[read // 2] = None
            case "batch order":
                values = [v if v is None or place > 3 else v * 1.5 for v in values]
            case "other temperature":
                values = [None if v is None else v / 1.5 for v in values]
            case "alike":
                values = [None, *(-1.0 for _ in tokens[1:])]
        return [None if v is None else v + self.noise * math.sin(7.0 * i + v) for i, v in enumerate(values)]

    def _top(self, tokens: list[str], index: int, most: int, values: list[float | None]) -> dict[str, float] | None:
        if index == 0:
            return None
        words = sorted((f" {word}" for word in WORDS), key=lambda word: -value(tokens[:index], word))[:most]
        best = {word: value(tokens[:index], word) for word in words}
        own = values[index]
        return best if own is None else best | {tokens[index]: own}


if __name__ == "__main__":
    run(VLLMServer(), arguments(__doc__ or "").parse_args())
