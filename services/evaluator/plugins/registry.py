"""The packages that extend this evaluator: what each offers, and what of it is left out and why."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from services.errors import InvalidRequestError, sendable
from services.evaluator.answers.scorers.scorer import Scorer
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import KINDS, Kind
from services.evaluator.endpoints.table import RESERVED
from services.evaluator.items.task import Response
from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import Limits, Package, Part, packages, said, unusable
from services.evaluator.plugins.process import PluginProcess
from services.evaluator.plugins.remote import RemoteProvider, RemoteSuite, remote_scorer
from services.evaluator.providers.protocol.provider import Listing, Provider, ProviderError, Request
from services.evaluator.suites import shipped
from services.words.plugins import PROVIDER, SCORER, SUITE
from services.words.scorers import SCORERS
from touchstone.v1 import evaluator_pb2

log = logging.getLogger(__name__)

_OPEN_SUITES = ("lm_eval",)
_MOST_NAME = 80
_MOST_BYTES = 256 * 1024
"""What all plug-ins may take of an evaluator's announcement, which must fit into one NATS message (1 MB)."""


def built_in() -> Mapping[str, Collection[str]]:
    """Touchstone's own names of each kind of part."""
    return {SUITE: {*shipped(), *_OPEN_SUITES}, SCORER: SCORERS.keys(), PROVIDER: KINDS.keys() | RESERVED}


class Plugins:
    """What the installed packages offer. A part that cannot be used is named in the log and announced with its reason,
    and nothing else suffers from it."""

    def __init__(self) -> None:
        self.suites: dict[str, RemoteSuite] = {}
        self.scorers: dict[str, Scorer] = {}
        self.kinds: dict[str, Kind] = {}
        self.missing_kinds: dict[str, str] = {}
        """By name, why a kind of endpoints is left out, in sentences that begin with the package."""
        self._processes: list[PluginProcess] = []
        self._kind_processes: dict[str, PluginProcess] = {}
        self._announced: list[evaluator_pb2.Plugin] = []
        self._room = _MOST_BYTES

    @classmethod
    async def load(cls, limits: Limits, data_dir: Path | None = None) -> Plugins:
        """Starts a process for each package. Raises nothing that a package does."""
        plugins = cls()
        found = packages()
        refused = unusable(found, built_in())
        # More at a time would only keep each other from being imported within the limit.
        starting = asyncio.Semaphore(os.cpu_count() or 1)
        loaded = await asyncio.gather(
            *(
                plugins._load(
                    package,
                    {part: refused[package.name, part] for part in package.parts if (package.name, part) in refused},
                    PluginProcess(package, limits, data_dir),
                    starting,
                )
                for package in found
            )
        )
        for package, process, facts in loaded:
            plugins._admit(package, process, facts)
        return plugins

    async def _load(
        self, package: Package, refused: Mapping[Part, str], process: PluginProcess, starting: asyncio.Semaphore
    ) -> tuple[Package, PluginProcess, Mapping[Part, messages.Facts | str]]:
        self._processes.append(process)
        # From a thread that lives as long as the evaluator: the process ends with the thread that has started it.
        loop = asyncio.get_running_loop()
        facts: dict[Part, messages.Facts | str] = dict(refused)
        try:
            async with starting:
                facts |= await loop.run_in_executor(process.executor, process.load, tuple(refused))
        except Exception:
            log.exception("%s cannot be started", package.label)
        return package, process, facts

    def _admit(self, package: Package, process: PluginProcess, facts: Mapping[Part, messages.Facts | str]) -> None:
        announced = evaluator_pb2.Plugin(package=package.name, version=package.version)
        for part in package.parts:
            found = facts.get(part, "Its process cannot be started. The evaluator's log has the details.")
            if not isinstance(found, str):
                try:
                    announced.parts.append(self._admitted(part, found, process))
                    continue
                except InvalidRequestError as error:
                    found = error.message
                except Exception as error:  # Facts of other types, and whatever else a package may declare.
                    found = f"What it declares cannot be announced: {said(error)}."
            announced.parts.add(part=part.what, name=sendable(part.name)[:_MOST_NAME], left_out=sendable(found))
            log.error("%s of %s is left out: %s", part.label, package.label, found)
            if part.what == PROVIDER and part.name not in KINDS:
                self.missing_kinds[part.name] = f"{package.label} is left out: {found}"
        self._announced.append(announced)

    def _admitted(self, part: Part, facts: messages.Facts, process: PluginProcess) -> evaluator_pb2.PluginPart:
        """How the part is announced, once it is there for jobs. Raises InvalidRequestError where it takes too much room
        in an announcement, and whatever facts of the wrong types raise."""
        told = evaluator_pb2.PluginPart(part=part.what, name=part.name)
        size = 0
        match facts:
            case messages.SuiteFacts():
                suite = RemoteSuite(part.name, facts, process)
                size = suite.announced().ByteSize()
                told.title = facts.title
            case messages.ScorerFacts():
                scorer = remote_scorer(part.name, facts, process)
                told.title, told.version = facts.title, facts.version
            case Kind():
                told.title = facts.label
        size += told.ByteSize()
        if size > self._room:
            raise InvalidRequestError(
                f"Its titles and descriptions take {size:,} bytes, and {self._room:,} of {_MOST_BYTES:,} are left for "
                "all plug-ins. Shorten them."
            )
        self._room -= size
        match facts:
            case messages.SuiteFacts():
                self.suites[part.name] = suite
            case messages.ScorerFacts():
                self.scorers[part.name] = scorer
            case Kind():
                self.kinds[part.name] = facts
                self._kind_processes[part.name] = process
        return told

    def announced(self) -> list[evaluator_pb2.Plugin]:
        """Every package by name."""
        return self._announced

    def provider(self, endpoint: Endpoint) -> Provider | None:
        """The provider of an endpoint whose kind is a package's; None for a built-in kind."""
        if endpoint.kind in self._kind_processes:
            return RemoteProvider(endpoint, self._kind_processes[endpoint.kind])
        return MissingProvider(endpoint.problem) if endpoint.problem else None

    def close(self) -> None:
        """Ends all processes."""
        for process in self._processes:
            process.close()


class MissingProvider:
    """Implements `Provider` for an endpoint whose kind no package offers here."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def list_models(self) -> Listing:
        raise self._error

    async def generate(self, request: Request) -> Response:
        raise self._error

    async def loglikelihoods(self, request: Request) -> Response:
        raise self._error

    async def close(self) -> None: ...

    @property
    def _error(self) -> ProviderError:
        return ProviderError(self._why, fatal=True)
