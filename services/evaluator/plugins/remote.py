"""A package's suites, scorers and providers for the rest of the evaluator. The package's process answers each call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, TypeVar, cast

from services import numbers
from services.errors import InvalidRequestError, TouchstoneError, sendable
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.scorers.scorer import Reply, Scorer, whole
from services.evaluator.data.reader import DataMissingError, Reader
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Continuation, Item, Message, Response, Scored
from services.evaluator.plugins import messages
from services.evaluator.plugins.contract import PluginError
from services.evaluator.plugins.process import PluginProcess
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.capabilities import complete
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request
from services.evaluator.providers.protocol.usage import Told
from touchstone.v1 import endpoint_pb2, suite_pb2
from touchstone.v1.content_pb2 import TokenLogprob, ToolCall

T = TypeVar("T")

_MOST_NAME = 80
"""Characters in the name of a statistic."""
_SHARES = frozenset({"correct", "correct_first", "correct_norm", "correct_bytes"})
_SHARE_RULES = (suite_pb2.MetricSpec.RULE_ALL, suite_pb2.MetricSpec.RULE_ANY, suite_pb2.MetricSpec.RULE_MAJORITY)
"""Statistics, and rules of metrics whose statistics, are from 0 to 1: scores, intervals and pages rely on it."""
_TEXTS = ("text", "reasoning", "finish_reason", "served_model", "parameters", "note")
_LISTS = {"continuations": Continuation, "tool_calls": ToolCall, "logprobs": TokenLogprob, "doubtful": str}
_MOST_LOGLIKELIHOOD = 1e9
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
    """Implements `Task`. Every method raises PluginError; those that read data also DataMissingError, which names the
    package, too."""

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
        # Only its items say so.
        self.grouped = True
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
        yield from self._each(str, "hashes", "reading the data of", indexes)

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        yield from self._each(Item, "items", "writing the prompts of", indexes)

    def train(self) -> Sequence[Item]:
        return self._read(list, "train", "reading the train split of")

    def answer(self, label: str) -> str:
        return self._read(str, "answer", "writing an answer to", label)

    def score(self, item: Item, response: Response) -> Scored:
        """What cannot be scored is never taken for wrong."""
        call = messages.OfTask(self._key, "score", (item, response))
        doing = f"scoring item {item.index} of {self.info.task}"
        scored = _asked(Scored, self._process, call, doing, self._process.limits.score_s)
        for name in ("prediction", "extraction"):
            if not isinstance(getattr(scored, name), str):
                raise _wrong(self.plugin, doing, f"its {name} is not a text")
        if unfit := unfit_statistics(scored.statistics, self.metrics, needed(self.metrics)):
            raise _wrong(self.plugin, doing, unfit)
        return scored

    def _read(self, kind: type[T], method: str, doing: str, *arguments: Any) -> T:
        call = messages.OfTask(self._key, method, arguments)
        doing = f"{doing} {self.info.task}"
        found = _asked(kind, self._process, call, doing, self._process.limits.data_s)
        return _whole(found, self.plugin, doing)

    def _each(self, kind: type[T], method: str, doing: str, indexes: Sequence[int]) -> list[T]:
        """One for each index."""
        found = self._read(list, method, doing, indexes)
        if len(found) != len(indexes) or not all(isinstance(each, kind) for each in found):
            given = f"it gave other things than one {kind.__name__} for each item"
            raise _wrong(self.plugin, f"{doing} {self.info.task}", given)
        return found


def _wrong(plugin: str, doing: str, what: str) -> PluginError:
    return PluginError(f"The plug-in {plugin} failed while {doing}: {what.removesuffix('.')}.")


def _asked(kind: type[T], process: PluginProcess, call: messages.Call, doing: str, limit_s: float) -> T:
    """Raises PluginError, and DataMissingError for data that is not available here. Both name the package."""
    plugin = process.package.label
    try:
        return _expected(kind, process.call(call, doing, limit_s), plugin, doing)
    except PluginError:
        raise
    except TouchstoneError as error:
        named = _wrong(plugin, doing, error.message)
        raise (DataMissingError(named.message) if isinstance(error, DataMissingError) else named) from error


def _expected(kind: type[T], found: object, plugin: str, doing: str) -> T:
    if not isinstance(found, kind):
        raise _wrong(plugin, doing, f"it gave {type(found).__name__}")
    return found


def _whole(found: T, plugin: str, doing: str) -> T:
    """What is stored with other texts. Raises PluginError for half a character, which no message may hold."""
    for text in _texts(found):
        if sendable(text) != text:
            raise _wrong(plugin, doing, f"it gave a text with half a character, {text!r:.80}")
    return found


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))
    elif isinstance(value, Mapping):
        yield from _texts(list(value.items()))
    elif isinstance(value, Item | Message):
        yield from _texts([getattr(value, field.name) for field in fields(value)])


def needed(metrics: Iterable[suite_pb2.MetricSpec]) -> list[str]:
    """The statistics that metrics read."""
    return [name for metric in metrics for name in (metric.statistic, metric.over) if name]


def unfit_statistics(statistics: Any, metrics: Iterable[suite_pb2.MetricSpec], names: Sequence[str]) -> str:
    """Why no metric can be computed from statistics, or they cannot be stored; empty where they fit. `names` are those
    that must be there."""
    shares = _SHARES | {metric.statistic for metric in metrics if metric.rule in _SHARE_RULES}
    for name in (*names, *statistics):
        if not isinstance(name, str) or not name.isprintable() or len(name) > _MOST_NAME:
            return f"{name!r:.80} is not a name of a statistic: a text of 1 to {_MOST_NAME} characters"
        value = statistics.get(name)
        if value is None:
            return f"its statistic {name} is missing"
        low, high = (0.0, 1.0) if name in shares else (-numbers.MOST_STATISTIC, numbers.MOST_STATISTIC)
        if numbers.real(value, low, high) is None:
            return f"its statistic {name} is {value!r:.80}, not a number from {low:g} to {high:g}"
    return ""


def remote_scorer(name: str, facts: messages.ScorerFacts, process: PluginProcess) -> Scorer:
    """The scorer, whose functions also raise PluginError."""

    plugin = process.package.label

    def ask(kind: type[T], method: str, doing: str, *arguments: Any) -> T:
        call = messages.OfScorer(name, method, arguments)
        return _asked(kind, process, call, f"{doing} by {name}", process.limits.score_s)

    def right(value: Any) -> str:
        doing = "reading a reference"
        found = ask(cast("type[str | messages.Unusable]", str | messages.Unusable), "right", doing, value)
        if isinstance(found, messages.Unusable):
            raise ValueError(found.why or f"cannot be used by {name}")
        return _whole(found, plugin, f"{doing} by {name}")

    def read(reply: Reply) -> Extraction:
        return ask(Extraction, "read", "reading an answer", reply)

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        doing = "scoring an answer"
        found = ask(dict, "judge", doing, answer, tuple(answers))
        if unfit := unfit_statistics(found, facts.metrics, facts.statistics):
            raise _wrong(plugin, f"{doing} by {name}", unfit)
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
        sent = replace(request, task=cast("Any", None), heard=None)
        response = _checked(await self._ask(Response, method, f"asking {self._endpoint.name}", sent))
        known = request.prices or prices.of(self._endpoint, request.model)
        tokens = response.input_tokens, response.output_tokens
        return replace(response, cost_usd=prices.cost_usd(known, *tokens, response.cost_usd))

    async def _ask(self, kind: type[T], method: str, doing: str, *arguments: Any) -> T:
        call = messages.OfProvider(self._sent, method, arguments)
        plugin = self._process.package.label
        try:
            found = _expected(
                kind, await self._process.ask(call, doing, self._endpoint.timeout_s + _ROOM_S), plugin, doing
            )
            if unfit := _unfit(found):
                raise _wrong(plugin, doing, unfit)
        except PluginError as error:
            raise ProviderError(error.message, retryable=True) from error
        except TouchstoneError as error:
            raise ProviderError(_wrong(plugin, doing, error.message).message, retryable=True) from error
        except ProviderError as error:
            error.retry_after_s = numbers.real(error.retry_after_s, 0.0, numbers.MOST_WAIT_S)
            raise
        return found


def _unfit(found: object) -> str:
    """Why a provider's listing or response cannot be used; empty where it can."""
    match found:
        case Listing(models, server):
            fits = isinstance(models, tuple) and all(isinstance(model, endpoint_pb2.Model) for model in models)
            return "" if fits and isinstance(server, str) else "its listing has other things than models"
        case Response():
            for name in _TEXTS:
                if not isinstance(value := getattr(found, name), str):
                    return f"its response has {type(value).__name__} as {name}"
            for name, kind in _LISTS.items():
                if not isinstance(value := getattr(found, name), tuple) or not all(
                    isinstance(one, kind) for one in value
                ):
                    return f"{name} of its response is not a tuple of {kind.__name__}"
            if any(
                numbers.real(one.loglikelihood, -_MOST_LOGLIKELIHOOD, numbers.MOST_LOG_PROBABILITY) is None
                for one in found.continuations
            ):
                return "a log-likelihood of its response is no number, or outside its range"
    return ""


def _checked(response: Response) -> Response:
    """Impossible numbers count as unknown."""
    told = Told()

    def count(name: str) -> int | None:
        value = getattr(response, name)
        return told.checked(name, value, numbers.whole(value, numbers.MOST_TOKENS))

    def time_ms(name: str) -> float:
        value = getattr(response, name)
        return told.checked(name, value, numbers.real(value, 0.0, numbers.MOST_WAIT_S * 1000)) or 0.0

    read, written, reasoned = count("input_tokens"), count("output_tokens"), count("reasoning_tokens")
    latency_ms, ttft_ms = time_ms("latency_ms"), time_ms("ttft_ms")
    billed = told.checked("cost_usd", response.cost_usd, numbers.answer_usd(response.cost_usd))
    return replace(
        response,
        input_tokens=read,
        output_tokens=written,
        reasoning_tokens=reasoned or 0,
        latency_ms=latency_ms,
        ttft_ms=ttft_ms,
        cost_usd=billed,
        doubtful=(*response.doubtful, *told.doubtful),
    )


def _plain(endpoint: Endpoint) -> Endpoint:
    """Without views of mappings, which cannot be sent."""
    entries = tuple(replace(entry, prices=dict(entry.prices)) for entry in endpoint.model_entries)
    return replace(endpoint, prices=dict(endpoint.prices), model_entries=entries, options=dict(endpoint.options))
