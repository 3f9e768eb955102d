"""HTTP connections that do not hold others up: connections that do not send a whole header, do not read, or are too
many are closed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from services.telemetry import metrics

_RETRY_S = 5
_LINGER_S = 2.0
_READ_BYTES = 16 * 1024
_UNREADABLE = "The request is not valid HTTP, or its address and headers are longer than 16 KiB. Send a shorter one."


@dataclass(slots=True)
class Crowd:
    """The connections of one server. Times are in seconds.

    A header must be whole within `header_s` of its connection, or of its first byte on a kept one. Above
    `most_half_open` connections without one the oldest is closed. A client that takes nothing for `stall_s` is gone.
    """

    most: int = 2000
    most_per_address: int = 1000
    most_half_open: int = 400
    header_s: float = 10
    stall_s: float = 60
    by_address: Counter[str] = field(default_factory=Counter)
    half_open: dict[Connection, None] = field(default_factory=dict)
    """In order of time."""

    def protocol(self) -> type[Connection]:
        """The class of connections for uvicorn."""
        return type("_Connection", (Connection,), {"crowd": self})


class Connection(H11Protocol):
    """uvicorn's connection, in a crowd."""

    crowd: Crowd
    _address = ""
    _refused = False
    """Whether further data is discarded."""
    _header_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio reads 256 KB at a time; 50,000 chunks of one byte in them would block the loop for seconds.
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
        self._address = self.client[0] if self.client else ""
        self.crowd.by_address[self._address] += 1
        if self.crowd.by_address[self._address] > self.crowd.most_per_address:
            metrics.REFUSALS.add("connections")
            self._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, "There are too many connections from your address. Close some."
            )
        elif len(self.connections) > self.crowd.most:
            metrics.REFUSALS.add("connections")
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "The server has too many connections. Try again in a moment.")
        else:
            self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_came()
        self._unset_stall()
        self.crowd.by_address[self._address] -= 1
        if not self.crowd.by_address[self._address]:
            del self.crowd.by_address[self._address]
        # uvicorn keeps this timer when a connection breaks.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        super().data_received(data)
        if not self._refused:
            self._look()

    def send_400_response(self, msg: str) -> None:
        """Answers a request that h11 cannot read like every other refusal: in JSON."""
        self._header_came()
        self._refused = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_answer(HTTPStatus.BAD_REQUEST, {"detail": _UNREADABLE}))
        # Closing at once would reset the connection of a client that still sends, and it would lose the answer.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)
        self._abort_later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unset_stall()
        self._await_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._unset_stall()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def _look(self) -> None:
        """Starts the header's timer if there are bytes of a header, else stops it. The rest of a body whose request was
        already answered must also come in that time."""
        theirs = self.conn.their_state
        begun = theirs is h11.IDLE and self.conn.trailing_data[0]
        if self.transport.is_closing() or theirs not in (h11.IDLE, h11.SEND_BODY):
            self._header_came()
        elif begun or (theirs is h11.SEND_BODY and self.conn.our_state is h11.DONE):
            if self._header_timer is None:
                self._await_header()
        elif theirs is h11.SEND_BODY:
            self._header_came()

    def _await_header(self) -> None:
        crowd = self.crowd
        self._header_timer = self.loop.call_later(crowd.header_s, self._header_late)
        crowd.half_open[self] = None
        if len(crowd.half_open) > crowd.most_half_open:
            next(iter(crowd.half_open))._header_late()

    def _header_came(self) -> None:
        self.crowd.half_open.pop(self, None)
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _header_late(self) -> None:
        self._header_came()
        if self.conn.our_state is h11.IDLE:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request's header did not arrive in time. Send it again.")
        else:
            self.transport.close()
            self._abort_later()

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Answers and closes a connection that has no request."""
        if not self.transport.is_closing():
            self.transport.write(_answer(status, {"detail": sentence, "retry_after": _RETRY_S}))
            self.transport.close()
            self._abort_later()

    def _await_reader(self, left: int) -> None:
        """Ends the connection when its client takes nothing of what is `left` for it."""

        def look() -> None:
            now = self.transport.get_write_buffer_size()
            if now < left:
                self._await_reader(now)
            else:
                self.transport.abort()

        self._stall_timer = self.loop.call_later(self.crowd.stall_s, look)

    def _abort_later(self) -> None:
        """A closed transport keeps data that its client does not read, and so the connection."""
        self.loop.call_later(self.crowd.stall_s, self.transport.abort)

    def _unset_stall(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _answer(status: HTTPStatus, body: dict[str, object]) -> bytes:
    """A whole response in JSON, after which the connection ends."""
    content = json.dumps(body).encode()
    later = f"Retry-After: {body['retry_after']}\r\n" if "retry_after" in body else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"{later}Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
