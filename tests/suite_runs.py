"""Every shipped suite in each mode it allows, run through one stack by models whose answers are known."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Item, Task
from services.evaluator.providers.openai.loglikelihood_proof import KNOWN
from services.evaluator.suites import shipped
from services.evaluator.tasks.kinds.definition import Definition
from tests.oracle import NONSENSE, inverted, right
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, by_mapping
from tests.servers.vllm_server import VLLMServer, tokens_of
from tests.stack import FINISHED, Endpoint, Stack
from tests.stub_thread import StubThread
from tests.suite_truth import Truth, truths, write_mirror
from touchstone.v1 import results_service_pb2, suite_pb2

GENERATE, LOGLIKELIHOOD = "generate", "loglikelihood"
MODES = {GENERATE: suite_pb2.MODE_GENERATE, LOGLIKELIHOOD: suite_pb2.MODE_LOGLIKELIHOOD}
ORACLE, INVERTED, CARELESS, NOBODY = "oracle", "inverted", "careless", "nonsense"
WITH_DIGEST = "digests"
MODEL = "stub"
SEED = 41
DEMO_LIMIT = 12
"""Of the demo's four hundred items a task."""
SUBJECTS = ("abstract_algebra", "philosophy", "sociology", "anatomy")
"""Of MMLU: one of each category."""
IN_QUEUE = 9
"""Jobs waiting or running at once: one user may have ten in the queue."""
_OF_DEMO = (right, inverted)
Key = tuple[str, str, str]
"""Suite, mode, provider."""


def modes_of(suite: str) -> list[str]:
    """The modes in which some task of a suite runs."""
    found = {mode for definition in definitions(suite) for mode in definition.modes}
    return [name for name, mode in MODES.items() if mode in found]


def definitions(suite: str, mode: str = GENERATE) -> list[Definition]:
    """The tasks that these runs take of a suite in a mode."""
    wanted = [d for d in shipped()[suite].definitions if suite != "mmlu" or d.task in SUBJECTS]
    return [d for d in wanted if MODES[mode] in d.modes]


RUNS: tuple[tuple[str, str], ...] = tuple((suite, mode) for suite in shipped() for mode in modes_of(suite))
KEYS: tuple[Key, ...] = (
    *((suite, mode, provider) for suite, mode in RUNS for provider in (ORACLE, INVERTED, CARELESS)),
    *((suite, mode, NOBODY) for suite, mode in RUNS if mode == GENERATE),
    ("gsm8k", GENERATE, WITH_DIGEST),
)


@dataclass
class Sayings:
    """What a model says to each prompt, and how likely it finds each text."""

    answers: dict[str, str] = field(default_factory=dict)
    likelihoods: dict[str, float] = field(default_factory=dict)

    def say(self, item: Item, text: str) -> None:
        prompt = "\n\n".join(message.content for message in item.messages)
        assert self.answers.setdefault(prompt, text) == text, f"one prompt has two answers: {prompt}"

    def prefer(self, item: Item, place: int) -> None:
        """The choice in this place is far likelier than the others."""
        self.likelihoods[item.context.rstrip()] = 0.0
        for at, choice in enumerate(item.choices):
            text, value = item.context + choice, -0.5 if at == place else -1e4
            assert self.likelihoods.setdefault(text, value) == value, f"one text is likely and not: {text}"


class Opinionated(VLLMServer):
    """A vLLM whose model finds known texts as likely as it is told, and all others as the toy model does."""

    def __init__(self, sayings: Sayings) -> None:
        super().__init__(Behaviour(by_mapping(sayings.answers)))
        self.likelihoods = sayings.likelihoods
        self.unknown: list[str] = []

    def _choice(self, body: dict[str, Any], prompt: str, place: int) -> dict[str, Any]:
        if not body.get("echo") or prompt.startswith(KNOWN):
            return super()._choice(body, prompt, place)
        if prompt not in self.likelihoods:
            self.unknown.append(prompt)
        tokens = tokens_of(prompt)
        values: list[float | None] = [None, *(-0.01 for _ in tokens[1:])]
        values[-1] = self.likelihoods.get(prompt, -1.0) - 0.01
        return {
            "text": prompt,
            "finish_reason": "length",
            "logprobs": {"tokens": tokens, "token_logprobs": values, "top_logprobs": None, "text_offset": None},
        }


class SuiteRuns:
    """The stack, the models and the jobs. `start` queues every job of `KEYS`; what follows reads their results."""

    def __init__(self, folder: Path, stubs: StubThread) -> None:
        self.data_dir = write_mirror(folder / "data")
        self.catalogue = Catalogue(self.data_dir)
        self.truths = {
            (suite, definition.task): truths(self.data_dir, definition)
            for suite in shipped()
            for definition in definitions(suite)
            if definition.source.dataset != "demo"
        }
        sayings = {provider: self._sayings(provider) for provider in (ORACLE, INVERTED, CARELESS)}
        self.servers = {provider: stubs.start(Opinionated(said)) for provider, said in sayings.items()}
        nobody = stubs.start(OpenAIServer(Behaviour(lambda prompt: NONSENSE)))
        digests = stubs.start(OllamaServer(Behaviour(by_mapping(sayings[ORACLE].answers))))
        calls: Endpoint = {"concurrency": 32}
        endpoints: list[Endpoint] = [
            *({"name": name, "kind": "vllm", "base_url": server.url, **calls} for name, server in self.servers.items()),
            {"name": NOBODY, "kind": "openai", "base_url": nobody.url, **calls},
            {"name": WITH_DIGEST, "kind": "ollama", "base_url": digests.url, **calls},
        ]
        self.stack = Stack(folder, endpoints, self.data_dir)
        self._job_ids: dict[Key, str] = {}
        self._bodies: dict[Key, dict[str, Any]] = {}
        self._items: dict[Key, dict[str, list[results_service_pb2.StoredItem]]] = {}

    def start(self) -> None:
        """Queues every job and returns when the last one has ended, however it did."""
        queued: deque[str] = deque()
        for key in KEYS:
            suite, mode, provider = key
            while len(queued) >= IN_QUEUE:
                self.stack.wait(queued.popleft(), 180)
            self._job_ids[key] = self.stack.run(provider, MODEL, suite, **_body(suite, mode))
            queued.append(self._job_ids[key])
        for job_id in queued:
            self.stack.wait(job_id, 180, FINISHED)

    # -- results -------------------------------------------------------------------------------------------------------

    def job_id(self, suite: str, mode: str, provider: str) -> str:
        return self._job_ids[suite, mode, provider]

    def body(self, suite: str, mode: str, provider: str) -> dict[str, Any]:
        """The REST results of a job, which must have completed."""
        key = (suite, mode, provider)
        if key not in self._bodies:
            self._bodies[key] = self.stack.completed(self._job_ids[key])
        return self._bodies[key]

    def measured(self, suite: str, mode: str, provider: str) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Task → metric → figures."""
        found: Mapping[str, Mapping[str, dict[str, Any]]] = self.body(suite, mode, provider)["performance_data"][suite]
        return found

    def items(self, suite: str, mode: str, provider: str) -> dict[str, list[results_service_pb2.StoredItem]]:
        """Every stored item by task."""
        key = (suite, mode, provider)
        if key not in self._items:
            found: dict[str, list[results_service_pb2.StoredItem]] = {}
            for item in self.stack.items(self._job_ids[key]):
                found.setdefault(item.task, []).append(item)
            self._items[key] = found
        return self._items[key]

    # -- models --------------------------------------------------------------------------------------------------------

    def _sayings(self, provider: str) -> Sayings:
        said = Sayings()
        for suite, mode in RUNS:
            for definition in definitions(suite, mode):
                task = self.catalogue.task(suite, definition.task, MODES[mode])
                for item, truth in self._pairs(suite, task):
                    text = _answer(provider, item, truth)
                    if mode == GENERATE:
                        said.say(item, NONSENSE if text is None else f"Answer: {text}")
                    else:
                        labels = item.labels or task.labels
                        said.prefer(item, labels.index(truth.wrong if text is None else text))
        return said

    def _pairs(self, suite: str, task: Task) -> Iterator[tuple[Item, Truth]]:
        items = list(task.items(range(task.size())))
        if suite == "demo":
            # Its rows are made by the suite itself, so there is nothing else to read them from.
            read = ([answer(task, item).removeprefix("Answer: ") for answer in _OF_DEMO] for item in items)
            return ((item, Truth(*texts)) for item, texts in zip(items, read, strict=True))
        return zip(items, self.truths[suite, task.info.task], strict=True)


def _answer(provider: str, item: Item, truth: Truth) -> str | None:
    """None for no answer."""
    if provider == CARELESS:
        # Of the row and not of the item: two suites share some.
        draw = random.Random(f"{item.context}{item.messages}").random()
        return None if draw < 0.1 else truth.wrong if draw < 0.3 else truth.right
    return truth.wrong if provider == INVERTED else truth.right


def _body(suite: str, mode: str) -> dict[str, Any]:
    body: dict[str, Any] = {"mode": mode, "seed": SEED}
    if suite == "mmlu":
        body["tasks"] = list(SUBJECTS)
    if suite == "demo":
        body["limit"] = DEMO_LIMIT
    return body
