"""An OpenAI stub that refuses calls beyond a limit, as providers do: so many in any window of so many seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault


class LimitedServer(OpenAIServer):
    """Answers at most `calls` in any `window_s`; refuses the others with status 429."""

    def __init__(self, behaviour: Behaviour, *, calls: int, window_s: float) -> None:
        super().__init__(behaviour)
        self.refused = 0
        self.answered: list[tuple[float, str]] = []
        """Monotonic time and model of each answered call."""
        self._calls = calls
        self._window_s = window_s
        self._recent: deque[float] = deque()

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        now = time.monotonic()
        while self._recent and self._recent[0] <= now - self._window_s:
            self._recent.popleft()
        if len(self._recent) >= self._calls:
            self.refused += 1
            fault = Fault("429", message="rate limit")
            return web.json_response(self.error(fault), status=429, headers={"Retry-After": "1"})
        self._recent.append(now)
        self.answered.append((now, body["model"]))
        return await super()._respond(request, body)

    def shares(self, models: Sequence[str], seconds: float, after_s: float = 0.0) -> dict[str, int]:
        """Answered calls of each model in the `seconds` that begin `after_s` after every model has had its first."""
        first = max(next(at for at, name in self.answered if name == model) for model in models) + after_s
        within = [name for at, name in self.answered if first <= at < first + seconds]
        return {model: within.count(model) for model in models}
