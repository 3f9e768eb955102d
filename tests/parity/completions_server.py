"""OpenAI's completions over a transformers model, with `echo` and `logprobs` as vLLM answers them.

`python completions_server.py <model directory> <port>`, in the environment of `make parity-env`. Every prompt is run
alone, in float32 on one thread, so that an answer depends on nothing but its prompt. It writes greedily only.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from aiohttp import web
from transformers import AutoModelForCausalLM, AutoTokenizer

MODEL = "parity"


class Completions:
    def __init__(self, folder: str) -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._words = [self._tokenizer.decode([token]) for token in range(len(self._tokenizer))]
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    async def models(self, request: web.Request) -> web.Response:
        longest = self._model.config.max_position_embeddings
        card = {"id": MODEL, "object": "model", "owned_by": "vllm", "max_model_len": longest}
        return web.json_response({"object": "list", "data": [card]})

    async def complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        prompt = body["prompt"]
        alone = isinstance(prompt, str) or (bool(prompt) and isinstance(prompt[0], int))
        prompts = [self._ids(each) for each in ([prompt] if alone else prompt)]
        # In a thread: two programs that ask at once then have a core each.
        answers = await asyncio.to_thread(self._choices, prompts, body)
        choices = [answer | {"index": index} for index, answer in enumerate(answers)]
        written = sum(choice.pop("written") for choice in choices)
        read = sum(map(len, prompts))
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        return web.json_response(
            {"id": "cmpl-1", "object": "text_completion", "model": MODEL, "choices": choices, "usage": usage}
        )

    def _ids(self, prompt: str | list[int]) -> list[int]:
        ids: list[int] = self._tokenizer(prompt).input_ids if isinstance(prompt, str) else prompt
        return ids

    def _choices(self, prompts: list[list[int]], body: dict[str, Any]) -> list[dict[str, Any]]:
        with torch.inference_mode():
            return [self._choice(ids, body) for ids in prompts]

    def _choice(self, prompt: list[int], body: dict[str, Any]) -> dict[str, Any]:
        ids, finish, text = list(prompt), "length", ""
        stops = [body["stop"]] if isinstance(body.get("stop"), str) else body.get("stop") or []
        for _ in range(body.get("max_tokens", 16)):
            ids.append(int(self._model(torch.tensor([ids])).logits[0, -1].argmax()))
            text = self._tokenizer.decode(ids[len(prompt) :])
            ends = [text.index(stop) for stop in stops if stop in text]
            if ends or ids[-1] == self._tokenizer.eos_token_id:
                finish, text = "stop", text[: min(ends, default=len(text))]
                break
        start = 0 if body.get("echo") else len(prompt)
        logprobs = self._logprobs(ids, start, body["logprobs"]) if body.get("logprobs") is not None else None
        shown = self._tokenizer.decode(prompt) + text if body.get("echo") else text
        return {"text": shown, "finish_reason": finish, "logprobs": logprobs, "written": len(ids) - len(prompt)}

    def _logprobs(self, ids: list[int], start: int, most: int) -> dict[str, Any]:
        every = self._model(torch.tensor([ids])).logits[0].log_softmax(-1)
        given: list[float | None] = [None, *every[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()]
        best, places = (part.tolist() for part in every.topk(most))
        tops: list[dict[str, float | None] | None] = [None]
        for at, token in enumerate(ids[1:]):
            most_likely = zip((self._words[other] for other in places[at]), best[at], strict=True)
            tops.append(dict(most_likely) | {self._words[token]: given[at + 1]})
        tokens = [self._words[token] for token in ids]
        offsets = [0, *accumulate(map(len, tokens[:-1]))]
        lists = {"tokens": tokens, "token_logprobs": given, "top_logprobs": tops, "text_offset": offsets}
        return {name: values[start:] for name, values in lists.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    server = Completions(str(Path(sys.argv[1])))
    app = web.Application(client_max_size=2**26)
    app.add_routes([web.get("/v1/models", server.models), web.post("/v1/completions", server.complete)])
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), print=None)
