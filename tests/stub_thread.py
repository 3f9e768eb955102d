"""Stub servers in a thread with an event loop of its own, so that a fixture of any scope can keep them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from tests.servers.stub import StubServer

AnyStub = TypeVar("AnyStub", bound=StubServer)


class StubThread:
    """Starts stub servers; their `behaviour` and `records` may be used from the test's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stubs", daemon=True)
        self._servers: list[StubServer] = []
        self._thread.start()

    def start(self, server: AnyStub) -> AnyStub:
        asyncio.run_coroutine_threadsafe(server.start(), self._loop).result(60)
        self._servers.append(server)
        return server

    def stop(self) -> None:
        for server in self._servers:
            asyncio.run_coroutine_threadsafe(server.stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


@contextmanager
def stub_thread() -> Iterator[StubThread]:
    thread = StubThread()
    try:
        yield thread
    finally:
        thread.stop()
