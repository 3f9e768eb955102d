"""The evaluator's side of a package's process: starts it, calls it, and ends it where it does not answer.

A call that was under way when the process ended is made once more, in a process that it has to itself: if that one
ends as well, the call is to blame, and no other call of the package suffers from it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import Limits, Package, Part, PluginError, said

log = logging.getLogger(__name__)

_THREADS = 16
_START_S = 60.0
"""A loaded machine takes long to start an interpreter, for which no part is to blame."""
_ALIVE_S = 5.0
_END_S = 5.0
_COMMAND = (sys.executable, "-m", "services.evaluator.plugins.child")


class _EndedError(Exception):
    """The process ended during the call; the message follows the package's name. `alone`: no other call was under
    way, so that this one is to blame."""

    def __init__(self, why: str, alone: bool) -> None:
        super().__init__(why)
        self.alone = alone


class _LoadingError(Exception):
    """The process ended while it imported a part; the message is a sentence."""

    def __init__(self, part: Part, why: str) -> None:
        super().__init__(why)
        self.part = part


class _Running:
    """One process that has imported its package. Raises _LoadingError where it does not get that far."""

    def __init__(self, setup: messages.Setup, import_s: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*_COMMAND, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self._connection = Connection(ours.detach())
        self._sending = threading.Lock()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._ended = ""
        self.facts: dict[Part, messages.Facts | str] = {}
        self._connection.send(setup)
        self._import(setup, import_s)
        threading.Thread(target=self._receive, daemon=True).start()

    def _import(self, setup: messages.Setup, import_s: float) -> None:
        part = next(part for part in setup.package.parts if part not in setup.skip)
        began = False
        try:
            while True:
                if not self._connection.poll(import_s if began else _START_S):
                    self.end()
                    why = f"was not imported within {import_s:g} s" if began else f"did not start within {_START_S:g} s"
                    raise _LoadingError(part, f"It {why}.")
                match self._connection.recv():
                    case messages.Importing(part):
                        began = True
                    case messages.Imported(part, str() as facts):
                        self.facts[part] = facts
                    case messages.Imported(part, bytes() as facts):
                        self.facts[part] = _unpacked_facts(facts)
                    case messages.Ready():
                        return
        except (EOFError, OSError) as error:
            raise _LoadingError(part, f"Its process ended while it was imported ({self._end_words()}).") from error

    @property
    def ended(self) -> bool:
        return bool(self._ended)

    def ask(self, call: messages.Call) -> tuple[int, Future[Any]]:
        """The future raises _EndedError where the process ends first."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            if self._ended:
                future.set_exception(_EndedError(self._ended, alone=False))
                return number, future
            self._waiting[number] = future
        try:
            with self._sending:
                self._connection.send(messages.Asked(number, call))
        except OSError:
            self._lose(self._end_words())
        return number, future

    def cancel(self, number: int) -> None:
        with self._lock:
            known = self._waiting.pop(number, None)
        if known is not None:
            try:
                with self._sending:
                    self._connection.send(messages.Asked(number, None))
            except OSError:
                self._lose(self._end_words())

    def end(self, why: str = "was ended") -> None:
        """Kills the process."""
        self._process.kill()
        self._lose(why)
        self._process.wait(_END_S)

    def _receive(self) -> None:
        try:
            while True:
                message = self._connection.recv()
                with self._lock:
                    future = self._waiting.pop(message.number, None)
                # Claimed, so that nobody can cancel it while it is answered.
                if future is None or not future.set_running_or_notify_cancel():
                    continue
                match message:
                    case messages.Failed():
                        future.set_exception(_RaisedError(message.why))
                    case messages.Answered():
                        _settle(future, message)
        except (EOFError, OSError):
            self._lose(self._end_words())
        except Exception:  # A message that cannot be read: nothing after it can.
            log.exception("a plug-in's process sent what cannot be read")
            self.end("sent what cannot be read")

    def _end_words(self) -> str:
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return "closed its connection"
        return f"ended its process with {f'signal {-code}' if code < 0 else f'exit code {code}'}"

    def _lose(self, why: str) -> None:
        with self._lock:
            self._ended = self._ended or why
            lost, self._waiting = list(self._waiting.values()), {}
        for future in lost:
            if future.set_running_or_notify_cancel():
                future.set_exception(_EndedError(self._ended, alone=len(lost) == 1))


class _RaisedError(Exception):
    """Code of the package raised this."""


def _unpacked_facts(facts: bytes) -> messages.Facts | str:
    try:
        found: messages.Facts = messages.unpacked(facts)
    except Exception as error:
        return f"What it declares cannot be read: {said(error)}."
    return found


def _settle(future: Future[Any], answered: messages.Answered) -> None:
    try:
        found = messages.unpacked(answered.error or answered.value)
    except messages.ForeignClassError as error:
        future.set_exception(_RaisedError(f"it gave {error}"))
    except Exception as error:
        future.set_exception(_RaisedError(f"what it gave cannot be read, {said(error)}"))
    else:
        if answered.error:
            future.set_exception(found)
        else:
            future.set_result(found)


class PluginProcess:
    """A package, whichever process runs it now. Safe for concurrent calls from threads and from the event loop.

    Blocking calls belong into threads of `executor`, so that a package that hangs keeps no thread from others.
    """

    def __init__(self, package: Package, limits: Limits, data_dir: Path | None = None) -> None:
        self.package = package
        self.limits = limits
        self.executor = ThreadPoolExecutor(_THREADS, thread_name_prefix=package.name)
        self._data_dir = str(data_dir or "")
        self._skip: tuple[Part, ...] = ()
        self._running: _Running | None = None
        self._starting = threading.Lock()
        self._alone = threading.Lock()
        self._closed = False

    def load(self, skip: tuple[Part, ...]) -> dict[Part, messages.Facts | str]:
        """Every part that is not to be skipped, with what it tells or why it cannot be used, in a sentence. A part that
        ends the process, or takes too long, is left out of later processes."""
        failed: dict[Part, messages.Facts | str] = {}
        self._skip = skip
        while any(part not in self._skip for part in self.package.parts):
            try:
                return self._process().facts | failed
            except _LoadingError as error:
                failed[error.part] = str(error)
                self._skip = (*self._skip, error.part)
        return failed

    def call(self, call: messages.Call, doing: str, limit_s: float) -> Any:
        """Blocking. `doing` is what is done, as in "scoring item 3". Raises PluginError, and Touchstone's own errors as
        the package raises them."""
        try:
            try:
                return self._within(self._process(), call, doing, limit_s)
            except _EndedError as error:
                if error.alone:
                    raise
            with self._alone:
                process = self._started()
                try:
                    return self._within(process, call, doing, limit_s)
                finally:
                    process.end()
        except _EndedError as error:
            raise self._failed(f"{error} while {doing}") from error
        except _LoadingError as error:
            raise self._failed(f"cannot be started again. {error}".rstrip(".")) from error

    async def ask(self, call: messages.Call, doing: str, limit_s: float) -> Any:
        """As `call`, of a provider, which is not asked again: that is decided where other failed calls are. A cancelled
        call is cancelled in the package, too."""
        process = self._running
        if process is None or process.ended:
            try:
                process = await asyncio.get_running_loop().run_in_executor(self.executor, self._process)
            except _LoadingError as error:
                raise self._failed(f"cannot be started again. {error}".rstrip(".")) from error
        loop = asyncio.get_running_loop()
        sent = loop.run_in_executor(self.executor, process.ask, call)
        try:
            async with asyncio.timeout(limit_s):
                # In a thread: a process that does not read would stop the whole loop.
                _, future = await asyncio.shield(sent)
                return await asyncio.wrap_future(future)
        except TimeoutError as error:
            await self._end_if_stuck(process)
            raise self._failed(f"took longer than {limit_s:g} s while {doing}") from error
        except (_EndedError, _RaisedError) as error:
            words = f"{error} while {doing}" if isinstance(error, _EndedError) else f"failed while {doing}: {error}"
            raise self._failed(words) from error
        finally:
            sent.add_done_callback(lambda _: self._cancel(process, sent))

    def _cancel(self, process: _Running, sent: asyncio.Future[tuple[int, Future[Any]]]) -> None:
        if not sent.cancelled() and sent.exception() is None and not self._closed:
            self.executor.submit(process.cancel, sent.result()[0])

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._closed = True
        with self._starting:
            if self._running is not None:
                self._running.end()
        self.executor.shutdown(wait=False, cancel_futures=True)

    def _process(self) -> _Running:
        with self._starting:
            if self._running is None or self._running.ended:
                self._running = self._started()
            return self._running

    def _started(self) -> _Running:
        if self._closed:
            raise PluginError(f"The evaluator stops, and {self.package.label} with it.")
        setup = messages.Setup(self.package, self._skip, self._data_dir, self.limits.memory_bytes)
        began = time.monotonic()
        process = _Running(setup, self.limits.import_s)
        log.info("%s has its own process, imported in %.1f s", self.package.label, time.monotonic() - began)
        return process

    def _within(self, process: _Running, call: messages.Call, doing: str, limit_s: float) -> Any:
        number, future = process.ask(call)
        try:
            return future.result(limit_s)
        except _RaisedError as error:
            raise self._failed(f"failed while {doing}: {error}") from error
        except TimeoutError:
            if future.done():  # The package itself raised it.
                raise
            process.end(f"took longer than {limit_s:g} s")
            # Its own future has the end by now, with whether others were under way.
            return future.result(_END_S)
        finally:
            process.cancel(number)

    async def _end_if_stuck(self, process: _Running) -> None:
        """Code that never lets others run would let every later call wait in vain."""
        try:
            async with asyncio.timeout(_ALIVE_S):
                _, future = await asyncio.get_running_loop().run_in_executor(
                    self.executor, process.ask, messages.Alive()
                )
                await asyncio.wrap_future(future)
        except TimeoutError:
            # Not in a thread of the package's own: all of them may wait for it.
            await asyncio.to_thread(process.end, "did not answer")
        except _EndedError:
            pass

    def _failed(self, words: str) -> PluginError:
        return PluginError(f"The plug-in {self.package.label} {words}. The evaluator's log has the details.")
