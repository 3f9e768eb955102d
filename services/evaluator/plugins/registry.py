"""The packages that extend this evaluator: what each offers, and what of it is left out and why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from services.evaluator.answers.scorers.scorer import Scorer
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import KINDS, Kind
from services.evaluator.endpoints.table import RESERVED
from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import Limits, Package, Part, packages, unusable
from services.evaluator.plugins.process import PluginProcess
from services.evaluator.plugins.remote import MissingProvider, RemoteProvider, RemoteSuite, remote_scorer
from services.evaluator.providers.protocol.provider import Provider
from services.evaluator.suites import shipped
from services.words.plugins import PROVIDER, SCORER, SUITE
from services.words.scorers import SCORERS
from touchstone.v1 import evaluator_pb2

log = logging.getLogger(__name__)

_OPEN_SUITES = ("lm_eval",)


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

    @classmethod
    async def load(cls, limits: Limits, data_dir: Path | None = None) -> Plugins:
        """Starts a process for each package. Raises nothing that a package does."""
        plugins = cls()
        found = packages()
        built_in = {SUITE: {*shipped(), *_OPEN_SUITES}, SCORER: SCORERS.keys(), PROVIDER: KINDS.keys() | RESERVED}
        refused = unusable(found, built_in)
        await asyncio.gather(
            *(
                plugins._load(
                    package,
                    {part: refused[package.name, part] for part in package.parts if (package.name, part) in refused},
                    PluginProcess(package, limits, data_dir),
                )
                for package in found
            )
        )
        plugins._announced.sort(key=lambda plugin: plugin.package)
        return plugins

    async def _load(self, package: Package, refused: Mapping[Part, str], process: PluginProcess) -> None:
        self._processes.append(process)
        # From a thread that lives as long as the evaluator: the process ends with the thread that has started it.
        loop = asyncio.get_running_loop()
        facts: dict[Part, messages.Facts | str] = dict(refused)
        try:
            facts |= await loop.run_in_executor(process.executor, process.load, tuple(refused))
        except Exception:
            log.exception("%s cannot be started", package.label)
        announced = evaluator_pb2.Plugin(package=package.name, version=package.version)
        for part in package.parts:
            found = facts.get(part, "Its process cannot be started. The evaluator's log has the details.")
            told = announced.parts.add(part=part.what, name=part.name)
            match found:
                case str():
                    told.left_out = found
                    log.error("%s of %s is left out: %s", part.label, package.label, found)
                    if part.what == PROVIDER and part.name not in KINDS:
                        self.missing_kinds[part.name] = f"{package.label} is left out: {found}"
                case messages.SuiteFacts():
                    self.suites[part.name] = RemoteSuite(part.name, found, process)
                    told.title = found.title
                case messages.ScorerFacts():
                    self.scorers[part.name] = remote_scorer(part.name, found, process)
                    told.title, told.version = found.title, found.version
                case Kind():
                    self.kinds[part.name] = found
                    self._kind_processes[part.name] = process
                    told.title = found.label
        self._announced.append(announced)

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
