"""The quick start of docs/experiments.md as it is written, against a stub of Ollama's wire: four models, three prompts
and all scenarios; people's scores; the same figures on the command line, in REST and in gRPC."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from services import numbers
from services.experiments import reading, scenarios
from services.words import rubrics
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, running, touchstone, until
from tests.stub_thread import stub_thread
from tests.unit.client.test_docs import EXPERIMENTS, commands
from touchstone.v1 import item_result_pb2, results_service_pb2

pytestmark = pytest.mark.stack

COLLECT, EXPORT, APPLY, COMPARE = commands(EXPERIMENTS.split("## Scores by people")[0], "touchstone")
MODELS = COLLECT[COLLECT.index("--models") + 1].split(",")
PROMPTS = COLLECT[COLLECT.index("--prompts") + 1].split(",")
NAME = COLLECT[COLLECT.index("--experiment") + 1]
ROWS = len(PROMPTS) * len(scenarios.tips())
CELLS = len(MODELS) * ROWS
FILE = EXPORT[EXPORT.index("--export") + 1]
BENCH = "/api/bench"
JUDGEMENT = {"reason": "fine", "relevance": 4, "actionability": 5, "tone": 1}


class Ollama(OllamaServer):
    """Each model has the size that its name says, and names itself in its answers' tips."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self.sizes = {name: numbers.parameters_b(name) for name in MODELS}

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        tips = [f"Tip {number}: {text}" for number in range(1 + MODELS.index(body["model"]))]
        return super().answer(body, json.dumps(tips))


@dataclass
class World:
    """The installation, its stub, and the file of a person."""

    stack: Stack
    ollama: Ollama
    file: Path

    def touchstone(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """The quick start's file is this test's own."""
        made = touchstone(self.stack, *(str(self.file) if word == FILE else word for word in words))
        assert made.returncode == code, made.stderr + made.stdout
        return made

    def get(self, path: str, **query: str) -> Any:
        with self.stack.client() as client:
            answer = client.get(f"{self.stack.url}{BENCH}{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def runs(self, **filters: Any) -> list[results_service_pb2.ExperimentRun]:
        request = results_service_pb2.ListExperimentRunsRequest(name=NAME, page_size=500, **filters)
        found: list[results_service_pb2.ExperimentRun] = []
        while True:
            page = self.stack.results.ListExperimentRuns(request, timeout=30)
            found += page.runs
            request.page_token = page.next_page_token
            if not request.page_token:
                return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("bench")
    with stub_thread() as stubs:
        ollama = stubs.start(Ollama(Behaviour(models=MODELS, answer=lambda prompt: f"{len(prompt)} words")))
        judges = stubs.start(OpenAIServer(Behaviour(models=("judge",), answer=lambda prompt: json.dumps(JUDGEMENT))))
        endpoints: list[Endpoint] = [
            {"name": "ollama", "kind": "ollama", "base_url": ollama.url, "concurrency": 8},
            {"name": "judges", "kind": "openai", "base_url": judges.url, "concurrency": 8},
        ]
        with running(Stack(folder, endpoints), request) as stack:
            stack.know_models("ollama", "judges")
            yield World(stack, ollama, folder / "judge.json")


def test_cells_are_asked_once_although_the_work_is_interrupted(world: World) -> None:
    stack = world.stack
    ids = world.touchstone(*COLLECT[1:], "--detach").stdout.split()
    assert len(ids) == len(MODELS)
    until(lambda: len(world.ollama.records) > CELLS // 3, 120)
    world.touchstone("cancel", ids[-1])
    stack.kill("evaluator-1")
    stack.kill("scheduler")
    until(lambda: touchstone(stack, "queue").returncode == 0)
    done = world.touchstone(*COLLECT[1:])
    assert done.stdout.split()[: len(ids)] == ids
    runs = world.runs()
    assert {run.outcome for run in runs} == {item_result_pb2.OUTCOME_ANSWERED}
    cells = [(run.model, run.prompt, run.scenario) for run in runs]
    assert len(cells) == len({*cells}) == CELLS
    # What was on its way at a kill, less than a unit, may be asked again; nothing else is.
    assert len(world.ollama.records) <= CELLS + 3 * 32
    assert {record.body.get("keep_alive") for record in world.ollama.records} == {0}
    for run in runs:
        assert len(run.candidates) == 1 + MODELS.index(run.model)
        assert run.judge_pending
    before = len(world.ollama.records)
    assert world.touchstone(*COLLECT[1:]).stdout.split()[: len(ids)] == ids
    assert len(world.ollama.records) == before


def score(model: str, answer: str) -> dict[str, int]:
    """What the person says of an answer."""
    length = len(answer)
    return {"relevance": 1 + MODELS.index(model), "actionability": 1 + length % 5, "tone": 1 + length % 3}


def fill(file: Path, most: int) -> None:
    """Fills in the first cells of a file; the answers say which model wrote them, by their number of tips."""
    document = json.loads(file.read_text())
    for cell in document["cells"][:most]:
        cell["scores"] = score(MODELS[len(json.loads(cell["answer"])) - 1], cell["answer"])
    file.write_text(json.dumps(document))


def test_a_persons_scores_are_stored_once_or_not_at_all(world: World) -> None:
    world.touchstone(*EXPORT[1:])
    text = world.file.read_text()
    document = json.loads(text)
    assert len(document["cells"]) == CELLS
    assert document["rubric"] == json.loads(rubrics.written(reading.shipped_rubric()))
    assert not any(name in text for name in (*MODELS, *PROMPTS[1:]))
    assert set(document["cells"][0]["scores"].values()) == {None}

    fill(world.file, 30)
    good = json.loads(world.file.read_text())
    wrong = json.loads(world.file.read_text())
    wrong["cells"][3]["scores"]["tone"] = None
    wrong["cells"][9]["scores"]["relevance"] = 6
    world.file.write_text(json.dumps(wrong))
    refused = world.touchstone(*APPLY[1:], code=2).stderr
    assert f"Cell {wrong['cells'][3]['id']} has no score for tone." in refused
    assert f"Cell {wrong['cells'][9]['id']} gives relevance the score 6" in refused
    assert all(run.judge_pending for run in world.runs())

    world.file.write_text(json.dumps(good))
    assert world.touchstone(*APPLY[1:]).stdout == f"30 scores stored, 0 as before, {CELLS - 30:,} pending.\n"
    assert world.touchstone(*APPLY[1:]).stdout == f"0 scores stored, 30 as before, {CELLS - 30:,} pending.\n"
    assert len(world.runs(judge_pending=True)) == CELLS - 30
    # A second file has what is left.
    world.touchstone(*EXPORT[1:], "--overwrite")
    fill(world.file, CELLS)
    left = json.loads(world.file.read_text())["cells"]
    assert len(left) == CELLS - 30
    assert {cell["id"] for cell in left} & {cell["id"] for cell in good["cells"][:30]} == set()
    assert world.touchstone(*APPLY[1:]).stdout == f"{CELLS - 30:,} scores stored, 0 as before, 0 pending.\n"
    assert world.runs(judge_pending=True) == []


def test_every_interface_gives_the_same_figures(world: World) -> None:
    expected: dict[tuple[str, str], list[float]] = defaultdict(list)
    rubric = reading.shipped_rubric()
    for run in world.runs():
        expected[run.model, run.prompt].append(rubrics.shares(rubric, score(run.model, run.answer))["composite"])
    shown = json.loads(world.touchstone(*COMPARE[1:], "--json").stdout)
    rest = world.get(f"/leaderboard/{NAME}")
    assert shown == rest
    board = world.stack.results.GetExperiment(results_service_pb2.GetExperimentRequest(name=NAME), timeout=30)
    assert (shown["source"], rest["source"], board.source) == (
        *("people", "people"),
        results_service_pb2.GetExperimentRequest.SOURCE_PEOPLE,
    )
    assert len(board.rows) == len(MODELS) * len(PROMPTS)
    for row, told in zip(board.rows, rest["leaderboard"], strict=True):
        assert row.composite.value == pytest.approx(fmean(expected[row.model, row.prompt]))
        held = row.composite
        assert (told["model"], told["prompt"], told["rank"]) == (row.model, row.prompt, row.rank)
        assert told["composite"] == {"value": held.value, "ci95": [held.low, held.high], "n": held.n}
        assert told["rank_range"] == [row.rank_low, row.rank_high]
        assert told["criteria"]["tone"]["value"] == next(
            one.score.value for one in row.criteria if one.criterion == "tone"
        )
    best = max(expected, key=lambda cell: fmean(expected[cell]))
    assert (board.rows[0].model, board.rows[0].prompt) == best
    table = world.touchstone(*COMPARE[1:]).stdout
    assert f"{board.rows[0].composite.value:.3f}" in table
    assert "Scores are people's." in table
    (listed,) = [one for one in world.get("/experiments")["experiments"] if one["name"] == NAME]
    assert [job["status"] for job in listed["jobs"]] == ["completed"] * len(MODELS)
    with world.stack.client() as client:
        kept = client.get(f"{world.stack.url}{BENCH}/definition/{NAME}", params={"format": "yaml"}).text
    assert world.touchstone("bench", "definition", "--experiment", NAME).stdout == kept
    world.file.with_suffix(".yaml").write_text(kept)
    again = world.touchstone("bench", "collect", str(world.file.with_suffix(".yaml")), "--detach")
    assert sorted(again.stdout.split()) == sorted(job["job_id"] for job in listed["jobs"])
    assert world.touchstone("bench", "definition", "--experiment", NAME).stdout == kept
    page = world.get(f"/runs/{NAME}", prompt=PROMPTS[0], limit="500")["runs"]
    told = {(one.model, one.scenario): one.answer for one in world.runs(prompt=PROMPTS[0])}
    assert all(told[one["model"], one["scenario"]] == one["answer"] for one in page)


def test_a_judge_of_all_answers_ranks_them_until_people_do(world: World, tmp_path: Path) -> None:
    path = tmp_path / "tips.yaml"
    path.write_text("name: judged\nprompts: [v1, v2-mentor]\nn_scenarios: 3\nrepeats: 2\n")
    words = ["bench", "collect", str(path), "--models", ",".join(MODELS[:2]), "--judge-model", "judge"]
    world.touchstone(*words)
    composite = rubrics.shares(reading.shipped_rubric(), JUDGEMENT)["composite"]

    def judged() -> bool:
        rows = json.loads(world.touchstone("bench", "compare", "--experiment", "judged", "--json").stdout)
        rows = rows["leaderboard"]
        return [row["scored"] for row in rows] == [6] * 4

    until(judged, 60, every_s=0.5)
    shown = world.touchstone("bench", "compare", "--experiment", "judged", "--source", "judge").stdout
    assert "Scores are those of the judge judges/judge." in shown
    board = world.get("/leaderboard/judged")
    assert (board["source"], board["judge"]) == ("judge", "judges/judge")
    assert [row["composite"]["value"] for row in board["leaderboard"]] == pytest.approx([composite] * 4)
    runs = world.get("/runs/judged")["runs"]
    assert len(runs) == 24
    assert {run["number"] for run in runs} == {1, 2}
    assert [run["judged"]["composite"] for run in runs] == pytest.approx([composite] * 24)
    assert world.get("/runs/judged", judge_pending="true")["runs"] == []
    # A person has rated none of them.
    world.touchstone("bench", "export", "--experiment", "judged", "--export", str(tmp_path / "judge.json"))
    assert len(json.loads((tmp_path / "judge.json").read_text())["cells"]) == 24


def test_other_prompts_and_large_models_are_refused(world: World) -> None:
    asked = len(world.ollama.records)
    words = [*COLLECT[1:]]
    words[words.index("--prompts") + 1] = "v1"
    assert "another name" in world.touchstone(*words, code=2).stderr
    large = ["bench", "collect", "--models", "qwen2.5:7b", "--prompts", "v1", "--experiment", "large"]
    assert "--max-model-b is 4" in world.touchstone(*large, code=2).stderr
    assert len(world.ollama.records) == asked
