"""Whole GLUE jobs of models whose answers are known, one per provider, through a running stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from services.evaluator.catalogue import Catalogue
from tests.oracle import NONSENSE, Answer, answers, careless, inverted, right
from tests.recompute import GLUE_METRICS, Answers
from tests.rows import read_split
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, by_mapping
from tests.stack import Endpoint, Stack
from tests.stub_thread import StubThread
from touchstone.v1 import item_result_pb2, results_service_pb2

BASELINE = "baseline"
ANSWERS: Mapping[str, Answer] = {
    "oracle": right,
    "inverted": inverted,
    "careless": careless,
    "nonsense": lambda task, item: NONSENSE,
}


class GlueRuns:
    """`data_dir` is a mirror of nyu-mll/glue. A provider's job runs when something of it is first asked for."""

    def __init__(self, folder: Path, data_dir: Path, stubs: StubThread) -> None:
        self.data_dir = data_dir
        self.tasks = {task: metrics for task, metrics in GLUE_METRICS.items() if self._file(task).exists()}
        catalogue = Catalogue(data_dir)
        endpoints: list[Endpoint] = []
        for name, answer in ANSWERS.items():
            known = answers(catalogue, "glue", list(self.tasks), answer)
            server = stubs.start(OpenAIServer(Behaviour(answer=by_mapping(known))))
            endpoints.append({"name": name, "kind": "openai", "base_url": server.url, "concurrency": 16})
        self.stack = Stack(folder, endpoints, data_dir)
        self._job_ids: dict[str, str] = {}
        self._bodies: dict[str, dict[str, Any]] = {}
        self._answers: dict[str, dict[str, Answers]] = {}

    def body(self, provider: str) -> dict[str, Any]:
        """The REST results of the provider's job."""
        if provider not in self._bodies:
            model = "bag-of-words" if provider == BASELINE else "stub"
            self._job_ids[provider] = self.stack.run(provider, model, "glue")
            self._bodies[provider] = self.stack.completed(self._job_ids[provider], 600)
        return self._bodies[provider]

    def job_id(self, provider: str) -> str:
        self.body(provider)
        return self._job_ids[provider]

    def measured(self, provider: str) -> dict[str, dict[str, dict[str, Any]]]:
        """Task → metric → figures, as REST tells them."""
        found: dict[str, dict[str, dict[str, Any]]] = self.body(provider)["performance_data"]["glue"]
        return found

    def answers(self, provider: str) -> dict[str, Answers]:
        """The exported items by task."""
        if provider not in self._answers:
            self.body(provider)
            items: dict[str, list[results_service_pb2.StoredItem]] = {task: [] for task in self.tasks}
            for item in self.stack.items(self._job_ids[provider]):
                items[item.task].append(item)
            self._answers[provider] = {task: Answers(found, self._positive(task)) for task, found in items.items()}
        return self._answers[provider]

    def rows(self, task: str) -> list[Mapping[str, Any]]:
        """The data set's validation rows of a task."""
        return list(read_split(self.data_dir, *_place(task)))

    def train_mean(self, task: str) -> float:
        labels = [float(row["label"]) for row in read_split(self.data_dir, _place(task)[0], "train")]
        return sum(labels) / len(labels)

    def _positive(self, task: str) -> str:
        """The text that stands for the Hub's label 1."""
        return next(iter(self.texts(task)[1])) if "f1" in self.tasks[task] else ""

    def texts(self, task: str) -> dict[Any, set[str]]:
        """The references by which the catalogue's items name each label of the rows."""
        made = Catalogue(self.data_dir).task("glue", task)
        rows = self.rows(task)
        found: dict[Any, set[str]] = {row["label"]: set() for row in rows}
        for row, item in zip(rows, made.items(range(made.size())), strict=True):
            found[row["label"]].add(item.reference)
        return found

    def _file(self, task: str) -> Path:
        config, split = _place(task)
        return self.data_dir / "nyu-mll/glue" / config / f"{split}.jsonl"


def _place(task: str) -> tuple[str, str]:
    """A task's configuration and validation split on the Hub."""
    if task.startswith("mnli"):
        return "mnli", "validation_mismatched" if task == "mnli_mismatched" else "validation_matched"
    return task, "validation"


def outcomes(found: Iterable[Answers]) -> set[item_result_pb2.Outcome]:
    return {result.outcome for each in found for result in each.results}
