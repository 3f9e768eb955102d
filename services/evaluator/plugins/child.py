"""The process of one package: `python -m services.evaluator.plugins.child FD`. It imports the package and answers calls
until the evaluator ends. Its output is that of the evaluator."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import resource
import signal
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace
from functools import reduce
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from services import numbers
from services.errors import InvalidRequestError, TouchstoneError
from services.evaluator.answers.scorers.scorer import Scorer, whole
from services.evaluator.data.reader import Reader
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.items.task import Task
from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import Part, ProviderKind, said
from services.evaluator.providers.protocol.provider import Provider, ProviderError
from services.evaluator.suites import ShippedSuite, declared
from services.words.plugins import SCORER, SUITE
from touchstone.v1 import suite_pb2

log = logging.getLogger(__name__)

_THREADS = 32
_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


def imported(part: Part) -> Any:
    """What the entry point names. Raises whatever importing it raises."""
    module, _, names = part.value.partition(":")
    return reduce(getattr, names.split(".") if names else (), import_module(module))


def require_scorer(name: str, found: object) -> Scorer:
    """What a scorer's entry point must name. Raises InvalidRequestError, with all that is wrong."""
    if not isinstance(found, Scorer):
        raise InvalidRequestError(f"The entry point names {type(found).__name__}, not a Scorer.")
    problems = []
    if found.name != name:
        problems.append(f"The scorer's name is {found.name!r}, but its entry point is named {name!r}. Use one name.")
    if not found.version:
        problems.append("The scorer has no version.")
    problems += [
        f"The scorer's {member} must be a text, not {type(value).__name__}."
        for member, value in (("version", found.version), ("title", found.title))
        if value and not isinstance(value, str)
    ]
    if not found.metrics:
        problems.append("The scorer has no metrics.")
    for metric in found.metrics:
        if not isinstance(metric, suite_pb2.MetricSpec):
            problems.append(f"The scorer's metrics have {metric!r:.80}, which is not a MetricSpec such as mean(...).")
        elif metric.statistic and metric.statistic not in found.statistics:
            problems.append(
                f"The metric {metric.metric} reads the statistic {metric.statistic}, which is not in statistics."
            )
    if problems:
        raise InvalidRequestError(" ".join(problems))
    return found


def require_kind(found: object) -> ProviderKind:
    """What a provider's entry point must name. Raises InvalidRequestError."""
    if not isinstance(found, ProviderKind):
        raise InvalidRequestError(f"The entry point names {type(found).__name__}, not a ProviderKind.")
    kind, usual = found.kind, Kind("")
    if not isinstance(kind, Kind):
        raise InvalidRequestError(f"The ProviderKind has {type(kind).__name__} as its kind, not a Kind.")
    problems = [
        f"{field.name} of its Kind must be of type {needed.__name__}."
        for field in fields(Kind)
        if not isinstance(getattr(kind, field.name), needed := type(getattr(usual, field.name)))
    ]
    if not problems and (kind.concurrency < 1 or not 0 < kind.timeout_s < numbers.MOST_WAIT_S):
        problems.append("concurrency of its Kind must be at least 1, and timeout_s must be above 0.")
    if problems:
        raise InvalidRequestError(" ".join(problems))
    return found


class Child:
    """Answers the evaluator at the other end of a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._setup: messages.Setup = connection.recv()
        self._suites: dict[str, ShippedSuite] = {}
        self._scorers: dict[str, Scorer] = {}
        self._kinds: dict[str, ProviderKind] = {}
        self._reader = Reader(Path(self._setup.data_dir) if self._setup.data_dir else None)
        self._tasks: dict[messages.TaskKey, Task] = {}
        self._providers: dict[str, Provider] = {}
        self._making = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS)
        self._loop = asyncio.new_event_loop()
        self._running: dict[int, Future[Any]] = {}

    def run(self) -> None:
        """Raises EOFError when the evaluator is gone."""
        if self._setup.memory_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (self._setup.memory_bytes,) * 2)
        for part in self._setup.package.parts:
            if part not in self._setup.skip:
                self._send(messages.Importing(part))
                self._send(messages.Imported(part, self._facts(part)))
        self._send(messages.Ready())
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        while True:
            asked: messages.Asked = self._connection.recv()
            self._take(asked.number, asked.call)

    def _send(self, message: object) -> None:
        with self._sending:
            self._connection.send(message)

    # -- importing -----------------------------------------------------------------------------------------------

    def _facts(self, part: Part) -> bytes | str:
        try:
            return messages.packed(self._told(part, imported(part)))
        except TouchstoneError as error:
            return error.message
        except BaseException as error:  # Also SystemExit, and what a package derives from BaseException itself.
            log.exception("%s of %s cannot be imported", part.label, self._setup.package.label)
            return f"{said(error)}."

    def _told(self, part: Part, found: object) -> messages.Facts:
        if part.what == SUITE:
            return self._suite(part.name, found)
        return self._scorer(part.name, found) if part.what == SCORER else self._kind(part.name, found)

    def _suite(self, name: str, found: object) -> messages.SuiteFacts:
        suite = self._suites[name] = declared(found, name)
        return messages.SuiteFacts(
            suite.title, suite.description, suite.weighting, tuple(map(self._definition, suite.definitions))
        )

    def _definition(self, definition: Any) -> messages.DefinitionFacts:
        modes = {}
        for mode in definition.modes:
            task = definition.task_on(self._reader, mode)
            modes[mode] = messages.TaskFacts(
                tuple(task.metrics), task.labels, task.scale, task.version, task.scorer_version, task.reading
            )
        return messages.DefinitionFacts(definition.info(), definition.optional, definition.most_shots, modes)

    def _scorer(self, name: str, found: object) -> messages.ScorerFacts:
        found = self._scorers[name] = require_scorer(name, found)
        return messages.ScorerFacts(
            found.title or name,
            found.version,
            tuple(found.metrics),
            tuple(found.statistics),
            found.read is not whole,
            found.first is not None,
        )

    def _kind(self, name: str, found: object) -> Any:
        self._kinds[name] = require_kind(found)
        return self._kinds[name].kind

    # -- answering -----------------------------------------------------------------------------------------------

    def _take(self, number: int, call: messages.Call | None) -> None:
        if call is None:
            if (running := self._running.get(number)) is not None:
                running.cancel()
            return
        work: Future[Any]
        match call:
            case messages.OfProvider():
                work = asyncio.run_coroutine_threadsafe(self._of_provider(call), self._loop)
            case messages.OfTask():
                work = self._threads.submit(self._of_task, call)
            case messages.OfScorer():
                work = self._threads.submit(self._of_scorer, call)
            case messages.Alive():
                work = asyncio.run_coroutine_threadsafe(_at_once(), self._loop)
        self._running[number] = work
        work.add_done_callback(lambda done: self._answer(number, done))

    def _answer(self, number: int, done: Future[Any]) -> None:
        self._running.pop(number, None)
        if done.cancelled():
            return
        try:
            self._send(self._reply(number, done))
        except (OSError, EOFError):
            return
        except Exception as unsent:  # What cannot be pickled is the package's fault.
            self._send(messages.Failed(number, f"its answer cannot be sent, {said(unsent)}"))

    def _reply(self, number: int, done: Future[Any]) -> object:
        error = done.exception()
        if error is None:
            return messages.Answered(number, value=messages.packed(done.result()))
        if isinstance(error, TouchstoneError | ProviderError) and type(error).__module__.startswith("services."):
            return messages.Answered(number, error=messages.packed(error))
        log.error("%s failed", self._setup.package.label, exc_info=error)
        return messages.Failed(number, said(error))

    def _of_scorer(self, call: messages.OfScorer) -> Any:
        scorer = self._scorers[call.scorer]
        if call.method != "right":
            return getattr(scorer, call.method)(*call.arguments)
        try:
            return scorer.right(*call.arguments)
        except ValueError as error:
            return messages.Unusable(said(error).removeprefix(type(error).__name__).removeprefix(": "))

    def _of_task(self, call: messages.OfTask) -> Any:
        key = call.key
        with self._making:
            task = self._tasks.get(key)
            if task is None:
                suite = self._suites[key.suite]
                definition = next(each for each in suite.definitions if each.task == key.task)
                task = self._tasks[key] = definition.task_on(self._reader, key.mode, key.shots, key.reading)
        found = getattr(task, call.method)(*call.arguments)
        return list(found) if call.method in ("hashes", "items", "train") else found

    async def _of_provider(self, call: messages.OfProvider) -> Any:
        endpoint = call.endpoint
        if call.method == "close":
            provider = self._providers.pop(endpoint.name, None)
            return None if provider is None else await provider.close()
        return await getattr(self._provider(endpoint), call.method)(*call.arguments)

    def _provider(self, endpoint: Endpoint) -> Provider:
        if endpoint.name not in self._providers:
            self._providers[endpoint.name] = self._kinds[endpoint.kind].make(replace(endpoint))
        return self._providers[endpoint.name]


async def _at_once() -> None:
    """The event loop turns."""


def main() -> None:
    # Signals to the whole process group are for the evaluator, which ends this process after its calls.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s: %(message)s")
    try:
        Child(Connection(int(sys.argv[1]))).run()
    except (EOFError, OSError):
        pass
    finally:
        # A thread of the package that never ends must not keep the process.
        os._exit(0)


if __name__ == "__main__":
    main()
