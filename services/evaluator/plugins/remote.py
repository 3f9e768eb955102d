"""A package's suites, scorers and providers for the rest of the evaluator. The package's process answers each call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from services.errors import InvalidRequestError
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.scorers.scorer import Reply, Scorer, whole
from services.evaluator.data.reader import Reader
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Response, Scored
from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import PluginError
from services.evaluator.plugins.process import PluginProcess
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.capabilities import complete
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request
from touchstone.v1 import suite_pb2

T = TypeVar("T")

_ROOM_S = 30.0
"""A provider keeps its endpoint's own limit; after so much more it is taken for stuck."""


@dataclass(frozen=True)
class RemoteSuite:
    """Implements `ListedSuite`."""

    name: str
    facts: messages.SuiteFacts
    process: PluginProcess

    @property
    def weighting(self) -> suite_pb2.Weighting:
        return self.facts.weighting

    @property
    def definitions(self) -> Sequence[RemoteDefinition]:
        return [RemoteDefinition(self, facts) for facts in self.facts.definitions]

    @property
    def executor(self) -> Executor:
        return self.process.executor

    @property
    def plugin(self) -> str:
        return self.process.package.label

    def announced(self) -> suite_pb2.Suite:
        return suite_pb2.Suite(
            suite=self.name,
            title=self.facts.title,
            description=self.facts.description,
            tasks=[definition.info for definition in self.facts.definitions],
            weighting=self.facts.weighting,
            plugin=self.plugin,
        )


@dataclass(frozen=True)
class RemoteDefinition:
    """Implements `TaskDeclaration`."""

    suite: RemoteSuite
    facts: messages.DefinitionFacts

    @property
    def task(self) -> str:
        return self.facts.info.task

    @property
    def optional(self) -> bool:
        return self.facts.optional

    @property
    def modes(self) -> Sequence[suite_pb2.Mode]:
        return list(self.facts.modes)

    @property
    def most_shots(self) -> int:
        return self.facts.most_shots

    def info(self) -> suite_pb2.TaskInfo:
        return self.facts.info

    def task_on(self, reader: Reader, mode: suite_pb2.Mode, shots: int = 0, reading: Layer | None = None) -> RemoteTask:
        """Reads its data in the package's process, not by `reader`. Raises as `Definition.task_on`."""
        if mode not in self.facts.modes:
            raise InvalidRequestError(f"Task {self.task} runs in generate mode only.", "mode")
        if not 0 <= shots <= self.most_shots:
            raise InvalidRequestError(
                f"Task {self.task} takes at most {self.most_shots} few-shot examples; {shots} were asked for.",
                "suite.shots",
            )
        return RemoteTask(self, mode, shots, reading)


class RemoteTask:
    """Implements `Task`. Every method but `score` raises PluginError, and what the task itself raises."""

    def __init__(self, definition: RemoteDefinition, mode: suite_pb2.Mode, shots: int, reading: Layer | None) -> None:
        facts, suite = definition.facts.modes[mode], definition.suite
        self.info = definition.info()
        self.metrics = facts.metrics
        self.shots = shots
        self.labels = facts.labels
        self.scale = facts.scale
        self.version = facts.version
        self.scorer_version = facts.scorer_version
        self.reading = None if facts.reading is None else reading or facts.reading
        self.mode = mode
        self.plugin = suite.plugin
        self.executor: Executor | None = suite.executor
        self._process = suite.process
        self._key = messages.TaskKey(suite.name, definition.task, mode, shots, reading)

    def size(self) -> int:
        return self._read(int, "size", "reading the data of")

    def revision(self) -> str:
        return self._read(str, "revision", "reading the data of")

    def prompt_hash(self) -> str:
        return self._read(str, "prompt_hash", "reading the data of")

    def hashes(self, indexes: Sequence[int]) -> Iterator[str]:
        yield from self._read(list, "hashes", "reading the data of", indexes)

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        yield from self._read(list, "items", "writing the prompts of", indexes)

    def train(self) -> Sequence[Item]:
        return self._read(list, "train", "reading the train split of")

    def answer(self, label: str) -> str:
        return self._read(str, "answer", "writing an answer to", label)

    def score(self, item: Item, response: Response) -> Scored:
        """Raises PluginError: what cannot be scored is never taken for wrong."""
        call = messages.OfTask(self._key, "score", (item, response))
        doing = f"scoring item {item.index} of {self.info.task}"
        scored = _expected(Scored, self._process.call(call, doing, self._process.limits.score_s), self.plugin, doing)
        _require_numbers(scored.statistics, self.plugin, doing)
        return scored

    def _read(self, kind: type[T], method: str, doing: str, *arguments: Any) -> T:
        call = messages.OfTask(self._key, method, arguments)
        doing = f"{doing} {self.info.task}"
        return _expected(kind, self._process.call(call, doing, self._process.limits.data_s), self.plugin, doing)


def _expected(kind: type[T], found: object, plugin: str, doing: str) -> T:
    if not isinstance(found, kind):
        raise PluginError(f"The plug-in {plugin} failed while {doing}: it gave {type(found).__name__}.")
    return found


def _require_numbers(statistics: Any, plugin: str, doing: str, names: Sequence[str] = ()) -> None:
    """Refuses statistics from which no metric can be computed."""
    for name in (*names, *statistics):
        value = statistics.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise PluginError(f"The plug-in {plugin} failed while {doing}: its statistic {name} is {value!r}.")


def remote_scorer(name: str, facts: messages.ScorerFacts, process: PluginProcess) -> Scorer:
    """The scorer, whose functions also raise PluginError."""

    plugin = process.package.label

    def ask(kind: type[T], method: str, doing: str, *arguments: Any) -> T:
        doing = f"{doing} by {name}"
        found = process.call(messages.OfScorer(name, method, arguments), doing, process.limits.score_s)
        return _expected(kind, found, plugin, doing)

    def right(value: Any) -> str:
        return ask(str, "right", "reading a reference", value)

    def read(reply: Reply) -> Extraction:
        return ask(Extraction, "read", "reading an answer", reply)

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        doing = "scoring an answer"
        found = ask(dict, "judge", doing, answer, tuple(answers))
        _require_numbers(found, plugin, doing, facts.statistics)
        return found

    def first(reply: Reply) -> Extraction | None:
        return ask(cast("type[Extraction | None]", Extraction | None), "first", "reading an answer", reply)

    return Scorer(
        name,
        facts.version,
        facts.metrics,
        facts.statistics,
        right,
        read if facts.reads else whole,
        judge,
        first=first if facts.first else None,
        title=facts.title,
        plugin=plugin,
        executor=process.executor,
    )


class RemoteProvider:
    """Implements `Provider`. Where its package fails, the call fails as one of a server that breaks off does."""

    def __init__(self, endpoint: Endpoint, process: PluginProcess) -> None:
        self._endpoint = endpoint
        self._sent = _plain(endpoint)
        self._process = process

    async def list_models(self) -> Listing:
        found = await self._ask(Listing, "list_models", "listing its models")
        return replace(found, models=tuple(complete(self._endpoint, model) for model in found.models))

    async def generate(self, request: Request) -> Response:
        return await self._response("generate", request)

    async def loglikelihoods(self, request: Request) -> Response:
        return await self._response("loglikelihoods", request)

    async def close(self) -> None:
        """Ends with the package's process."""

    async def _response(self, method: str, request: Request) -> Response:
        sent = replace(request, task=cast("Any", None))
        response = await self._ask(Response, method, f"asking {self._endpoint.name}", sent)
        known = request.prices or prices.of(self._endpoint, request.model)
        tokens = response.input_tokens, response.output_tokens
        return replace(response, cost_usd=prices.cost_usd(known, *tokens, response.cost_usd))

    async def _ask(self, kind: type[T], method: str, doing: str, *arguments: Any) -> T:
        call = messages.OfProvider(self._sent, method, arguments)
        try:
            found = await self._process.ask(call, doing, self._endpoint.timeout_s + _ROOM_S)
            return _expected(kind, found, self._process.package.label, doing)
        except PluginError as error:
            raise ProviderError(error.message, retryable=True) from error


def _plain(endpoint: Endpoint) -> Endpoint:
    """Without views of mappings, which cannot be sent."""
    entries = tuple(replace(entry, prices=dict(entry.prices)) for entry in endpoint.model_entries)
    return replace(endpoint, prices=dict(endpoint.prices), model_entries=entries, options=dict(endpoint.options))


class MissingProvider:
    """Implements `Provider` for an endpoint whose kind comes from a package that is left out."""

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
