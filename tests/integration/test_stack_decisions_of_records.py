"""Decisions between published models through every process: a server answers from the record, and the verdict of the
pipeline must be that of the statistics alone, after as many items. So the figures of `make simulation`, which asks the
statistics about all pairs, are those of the product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from services import decision_order
from services.evaluator.catalogue import Catalogue
from services.results.sequential.draws import Pair
from services.results.sequential.evidence import evidence
from services.words.enums import DECISION_VERDICTS
from tests.calibration.deciding import ABSENT, FOLDER, TASKS, items, opposite, record, whole
from tests.parts import NIGHTLY
from tests.record import published
from tests.record.runner import SCORERS, right_answer, upload
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Stack, running
from tests.stack_decisions import ended, started
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2, suite_pb2

pytestmark = [pytest.mark.stack, pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)]

PAIRS = None if NIGHTLY else 4
"""Of each task. Each night all."""
CALLS = 32
MOST_IN_VAIN = 0.02
"""Of the items of a task. All pairs need at most 28 %, as `make simulation` checks: so they ask at most 30 %."""
MOST_ASKED, LEAST_AGREED, MOST_OPPOSITE = 0.30, 0.95, 0.001
"""What is promised of all pairs: the part of the items, and the verdicts that are and are not those of all items."""


@dataclass(frozen=True)
class Question:
    """An item of a task: its place in the record, and texts that are scored as right and as wrong."""

    task: str
    place: int
    right: str
    wrong: str


class Replay(OpenAIServer):
    """Answers each prompt rightly or wrongly, as the record says of the model."""

    def __init__(self) -> None:
        self.marks = {task: record(task) for task in TASKS}
        super().__init__(Behaviour(models=sorted({model for marks in self.marks.values() for model in marks})))
        self.questions: dict[str, Question] = {}

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        question = self.questions[self.prompt(body)]
        right = self.marks[question.task][body["model"]][question.place]
        return super().answer(body, question.right if right else question.wrong)


@pytest.fixture(scope="module")
def server() -> Iterator[Replay]:
    with stub_thread() as stubs:
        yield stubs.start(Replay())


@pytest.fixture(scope="module")
def stack(server: Replay, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("records")
    endpoint = {"name": "replay", "kind": "openai", "base_url": server.url, "concurrency": CALLS}
    room = {"TOUCHSTONE_PENDING_PER_USER": "1000"}
    made = Stack(folder, [endpoint], published.write_gsm8k(folder / "data"), environment=room)
    with running(made, request) as started:
        started.know_models("replay")
        yield started


@pytest.mark.parametrize("task", TASKS)
def test_the_pipeline_decides_as_the_statistics_alone(stack: Stack, server: Replay, task: str, tmp_path: Path) -> None:
    work = _work(stack, server, task, tmp_path)
    marks, chance = server.marks[task], Random(17)
    every = list(combinations(sorted(marks), 2))
    pairs = chance.sample(every, PAIRS or len(every))
    made = []
    for seed, pair in enumerate(pairs):
        sides = [job_pb2.JobSpec(endpoint="replay", model=model) for model in pair]
        for side in sides:
            side.MergeFrom(work)
        made.append(started(stack, *sides, seed=seed))
    known = {item: place for place, item in enumerate(items(task))}
    places = [known[row["id"]] for row in published.questions(task)]
    needed = asked = agreed = opposites = 0
    for seed, (pair, decision) in enumerate(zip(pairs, made, strict=True)):
        found = ended(stack, decision, 600)
        a, b = (marks[model] for model in pair)
        order = [places[position] for _, position in decision_order.order(found.baseline.plan, seed)]
        answers = [Pair(float(a[place]), float(b[place])) for place in order]
        alone = evidence(answers, error=0.05, margin=0.0, total=len(answers))
        shown = f"{task}: {pair[1]} against {pair[0]}"
        assert (found.verdict, found.decided_at) == (DECISION_VERDICTS[alone.verdict], alone.decided_at), shown
        for job in (found.baseline, found.candidate):
            # Its part of twice the calls at once, and what was answered out of order.
            most = found.decided_at + max(2 * CALLS, found.decided_at // 4) + 4 * decision_order.UNIT
            assert job.progress.items_done <= most, shown
        needed += 2 * found.decided_at
        asked += found.baseline.progress.items_done + found.candidate.progress.items_done
        truth = whole(b - a).verdict
        agreed += alone.verdict == truth
        opposites += opposite(alone.verdict, truth)
    all_items = 2 * len(places) * len(pairs)
    parts = f"needed {needed / all_items:.1%} of the items, and asked {asked / all_items:.1%}"
    print(f"\n{task}: {len(pairs)} decisions {parts}")
    print(f"  {agreed / len(pairs):.2%} of the verdicts are those of all items, {opposites} the opposite")
    assert asked - needed <= MOST_IN_VAIN * all_items
    if PAIRS is None:
        assert asked <= MOST_ASKED * all_items
        assert agreed >= LEAST_AGREED * len(pairs)
        assert opposites <= MOST_OPPOSITE * len(pairs)


def _work(stack: Stack, server: Replay, task: str, folder: Path) -> job_pb2.JobSpec:
    """What both jobs do. From here on the server knows the questions."""
    rows = published.questions(task)
    if task in SCORERS:
        _, dataset_id = upload(stack, folder, task)
        prompts = [row["question"] for row in rows]
        work = job_pb2.JobSpec(dataset=job_pb2.DatasetWork(dataset_id=dataset_id))
    else:
        known = Catalogue(stack.folder / "data").task(task, task, suite_pb2.MODE_GENERATE)
        asked = known.items(range(known.size()))
        prompts = ["\n\n".join(message.content for message in item.messages) for item in asked]
        work = job_pb2.JobSpec(suite=job_pb2.SuiteWork(suite=task))
    places = {item: place for place, item in enumerate(items(task))}
    for row, prompt in zip(rows, prompts, strict=True):
        right = right_answer(task, row["answer"]).lstrip("# ")
        wrong = "none of these" if task == "crux" else f"{float(right.replace(',', '')) + 1:.15g}"
        server.questions[prompt] = Question(task, places[row["id"]], right, wrong)
    return work
