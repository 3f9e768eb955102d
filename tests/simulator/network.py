"""The wire between NATS clients and the fake server: ordered bytes with delays, connections that break.

A client's transport is given to the real nats-py in place of its own. What a client has written is on its way even
when its process is killed, as it is in a kernel; `lose_writes` takes it away, as a power cut would.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Callable
from typing import Any, Protocol

from tests.simulator.loop import Process, SimLoop, current

_INFO = {
    "server_id": "SIMULATED",
    "server_name": "simulated",
    "version": "2.15.1",
    "headers": True,
    "max_payload": 1048576,
    "proto": 1,
    "jetstream": True,
}


class Server(Protocol):
    """What the wire needs of the server."""

    up: bool

    def joined(self, connection: Connection) -> None: ...

    def left(self, connection: Connection) -> None: ...

    def subscribed(self, connection: Connection, subject: str, queue: str, sid: int) -> None: ...

    def unsubscribed(self, connection: Connection, sid: int, most: int) -> None: ...

    def published(self, connection: Connection, subject: str, reply: str, raw: bytes, data: bytes) -> None: ...


class Network:
    """All connections. `delay` gives the seconds that a write takes, `cut_off` the names of processes that reach
    nobody."""

    def __init__(self, loop: SimLoop, server: Server, delay: Callable[[], float]) -> None:
        self.loop, self.server, self.delay = loop, server, delay
        self.connections: list[Connection] = []
        self.cut_off: set[str] = set()
        self.outside = contextvars.Context()

    def later(self, delay: float, work: Callable[..., None], *args: Any) -> None:
        """In no process."""
        self.loop.call_later(delay, work, *args, context=self.outside)

    def transport(self) -> Transport:
        """What nats-py gets in place of a TCP connection."""
        return Transport(self)

    def break_all(self) -> None:
        for connection in list(self.connections):
            connection.broken()


class Connection:
    """One established connection, as the server sees it."""

    def __init__(self, network: Network, process: Process | None) -> None:
        self._network = network
        self.process = process
        self.open = True
        self._context = contextvars.copy_context()
        self._in, self._out = bytearray(), bytearray()
        self._unsent: list[tuple[float, bytes]] = []
        self._arrivals = self._departures = 0.0
        self._flushing = False
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self.stalled_until = 0.0
        if process is not None:
            process.on_kill.append(self._process_died)
        network.connections.append(self)

    def __hash__(self) -> int:
        return id(self)

    # -- from the client -------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Called by the client: the bytes reach the server later, in order."""
        if not self.open:
            raise ConnectionResetError("the connection is gone")
        now = self._network.loop.time()
        self._arrivals = max(self._arrivals, now + self._network.delay(), self.stalled_until)
        self._network.later(self._arrivals - now, self._arrived, data)

    def _arrived(self, data: bytes) -> None:
        if not self.open or not self._network.server.up:
            return
        self._in += data
        self._parse()

    def _parse(self) -> None:
        server, buffer = self._network.server, self._in
        while self.open:
            end = buffer.find(b"\r\n")
            if end < 0:
                return
            line = buffer[:end].decode()
            words = line.split(" ")
            command = words[0].upper()
            taken = end + 2
            if command in ("PUB", "HPUB"):
                size = int(words[-1])
                if len(buffer) < taken + size + 2:
                    return
                body = bytes(buffer[taken : taken + size])
                taken += size + 2
                del buffer[:taken]
                headers = int(words[-2]) if command == "HPUB" else 0
                named = words[1 : -2 if command == "HPUB" else -1]
                reply = named[1] if len(named) > 1 else ""
                server.published(self, named[0], reply, body[:headers], body[headers:])
                continue
            del buffer[:taken]
            if command == "PING":
                self.send(b"PONG\r\n")
            elif command == "SUB":
                words = [word for word in words if word]
                server.subscribed(self, words[1], words[2] if len(words) > 3 else "", int(words[-1]))
            elif command == "UNSUB":
                server.unsubscribed(self, int(words[1]), int(words[2]) if len(words) > 2 and words[2] else 0)

    # -- to the client ---------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Called by the server: the bytes reach the client later, in order."""
        self._out += data
        if not self._flushing:
            self._flushing = True
            now = self._network.loop.time()
            self._departures = max(self._departures, now + self._network.delay(), self.stalled_until)
            self._network.loop.call_at(self._departures, self._received, context=self._context)

    def _received(self) -> None:
        """In the client's process."""
        self._flushing = False
        if self.open:
            self._buffer += self._out
            self._out.clear()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        while not self._buffer:
            if not self.open:
                return b""
            self._waiter = self._network.loop.create_future()
            await self._waiter
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    async def readline(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if not self.open:
                return b""
            self._waiter = self._network.loop.create_future()
            await self._waiter
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    @property
    def at_eof(self) -> bool:
        return not self.open and not self._buffer

    # -- ends ------------------------------------------------------------------------------------------------------

    def broken(self) -> None:
        """The connection breaks: what is on its way either way is lost."""
        if not self.open:
            return
        self._close()
        self._network.loop.call_later(self._network.delay(), self._wake, context=self._context)

    def close(self) -> None:
        """The client closes in order: the server learns of it after what was written before."""
        if self.open:
            now = self._network.loop.time()
            self._network.later(max(self._arrivals - now, 0.0) + self._network.delay(), self._close)

    def _process_died(self) -> None:
        self.close()

    def lose_writes(self) -> None:
        """What the client has written and the server has not read never arrives."""
        if self.open:
            self._close()

    def _close(self) -> None:
        if self.open:
            self.open = False
            self._network.connections.remove(self)
            self._network.server.left(self)


class Transport:
    """As nats-py's TcpTransport."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._connection: Connection | None = None

    async def connect(self, uri: object, buffer_size: int, connect_timeout: int) -> None:
        await asyncio.sleep(self._network.delay())
        process = current()
        if not self._network.server.up or (process is not None and process.name in self._network.cut_off):
            raise ConnectionRefusedError("nobody listens there")
        self._connection = Connection(self._network, process)
        self._network.server.joined(self._connection)
        self._connection.send(b"INFO " + json.dumps(_INFO).encode() + b"\r\n")

    def _get(self) -> Connection:
        if self._connection is None:
            raise ConnectionResetError("not connected")
        return self._connection

    def write(self, payload: bytes) -> None:
        self._get().write(payload)

    def writelines(self, payload: list[bytes]) -> None:
        self._get().write(b"".join(payload))

    async def read(self, buffer_size: int) -> bytes:
        return await self._get().read()

    async def readline(self) -> bytes:
        return await self._get().readline()

    async def drain(self) -> None:
        """There is always room."""

    async def wait_closed(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def at_eof(self) -> bool:
        return self._connection is None or self._connection.at_eof

    def __bool__(self) -> bool:
        return self._connection is not None
