"""Streamed answers on their way to the sender: as a server sends them, or made of what another kind sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from services.bus import Outbox
from services.evaluator.calls.chat_form import DONE, delta_text, event
from services.evaluator.calls.refusals import RefusedCallError
from services.evaluator.items.task import Response

_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


class Writer(Protocol):
    """One of the forms in which an answer is written; events are numbered from 0."""

    def whole(self, response: Response) -> dict[str, Any]: ...

    def opening(self) -> Iterator[bytes]: ...

    def delta(self, text: str, number: int, /) -> bytes: ...

    def rest(self, response: Response, sent: str, number: int, /) -> Iterator[bytes]: ...

    def failure(self, refusal: RefusedCallError) -> bytes: ...


class Streamed:
    """An answer in pieces as they are heard from any kind of provider."""

    def __init__(self, writer: Writer, outbox: Outbox) -> None:
        self._writer = writer
        self._outbox = outbox
        self._sent = ""
        self._number = 0

    async def heard(self, told: Any) -> None:
        if text := delta_text(told):
            await self._open()
            self._sent += text
            await self._write(self._writer.delta(text, self._number))

    async def end(self, response: Response) -> None:
        await self._open()
        for piece in self._writer.rest(response, self._sent, self._number):
            await self._outbox.write(piece)

    async def _open(self) -> None:
        if not self._outbox.started:
            self._outbox.begin(200, _EVENTS)
            for piece in self._writer.opening():
                await self._write(piece)

    async def _write(self, piece: bytes) -> None:
        self._number += 1
        await self._outbox.write(piece)


class RelayedStream:
    """Events of OpenAI's protocol as they come. `body` is the request that brings them: it asks for usage in any case,
    which only a sender gets who asked for it. `shown` replaces the model's name, if the server has its own."""

    def __init__(self, outbox: Outbox, asked: dict[str, Any], shown: str) -> None:
        self._outbox = outbox
        self._shown = shown
        self._is_chat = "messages" in asked
        options = asked.get("stream_options")
        options = options if isinstance(options, dict) else {}
        self._with_usage = bool(options.get("include_usage"))
        self.body: Mapping[str, Any] = asked
        if self._is_chat and asked.get("stream"):
            self.body = asked | {"stream_options": options | {"include_usage": True}}

    async def heard(self, told: Any) -> None:
        if not isinstance(told, dict) or told.get("error"):
            return  # The whole answer is then refused.
        if not self._outbox.started:
            self._outbox.begin(200, _EVENTS)
        if self._shown:
            self._rename(told)
        if not self._is_chat:
            await self._outbox.write(event(told, str(told.get("type") or "")))
            return
        if not self._with_usage:
            told = dict(told)
            if told.pop("usage", None) and not told.get("choices"):
                return
        await self._outbox.write(event(told))

    async def end(self) -> None:
        if self._is_chat:
            await self._outbox.write(DONE)

    def _rename(self, told: dict[str, Any]) -> None:
        for held in (told, told.get("response")):
            if isinstance(held, dict) and "model" in held:
                held["model"] = self._shown
