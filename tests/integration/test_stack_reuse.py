"""Stored answers through every process: what is taken is not asked for, and what is asked for is not asked twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from services.evaluator.catalogue import Catalogue
from tests import real_rows
from tests.oracle import NONSENSE, answers, careless
from tests.rows import write_mirror
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, by_mapping
from tests.stack import Endpoint, Stack, running, touchstone, until
from tests.stub_thread import stub_thread
from touchstone.v1 import item_result_pb2, job_pb2

pytestmark = pytest.mark.stack

ROWS = {"sst2": 96, "rte": 40}
CALLS = 4
"""At once, on the endpoint whose evaluator is killed."""
ROOM = 64
"""Tokens that an answer needs; with fewer a fifth of the stub's answers is cut."""


class Cutting(OpenAIServer):
    """Answers some prompts only where there is room for it."""

    def __init__(self, known: dict[str, str]) -> None:
        super().__init__(Behaviour(answer=by_mapping(known)))
        self.known = known
        self.wordy = set(list(known)[::5])

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        prompt = prompt_of(body)
        if prompt in self.wordy and body.get("max_tokens", ROOM) < ROOM:
            made = super().answer(body, NONSENSE)
            made["choices"][0]["finish_reason"] = "length"
            return made
        # Every third answer of a seeded series is wrong.
        if body.get("seed", 0) % 3 == 2:
            return super().answer(body, NONSENSE)
        return super().answer(body, text)


def prompt_of(body: dict[str, Any]) -> str:
    return "\n\n".join(message["content"] for message in body["messages"])


@dataclass(frozen=True)
class Killed:
    """A job of 96 items whose first evaluator was killed in the middle, with what was stored then and all its calls."""

    job_id: str
    body: dict[str, Any]
    stored: set[str]
    calls: Counter[str]


@dataclass
class World:
    stack: Stack
    stub: Cutting
    digests: OllamaServer
    seen: dict[int, int] = field(default_factory=dict)

    def calls(self, server: OpenAIServer | OllamaServer) -> list[dict[str, Any]]:
        """Bodies of the requests since the last question."""
        first = self.seen.get(server.port, 0)
        self.seen[server.port] = len(server.records)
        return [record.body for record in server.records[first:]]

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        with self.stack.client() as client:
            answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    @cached_property
    def killed(self) -> Killed:
        """Made once, on an endpoint that nobody serves afterwards."""
        self.calls(self.stub)
        self.stub.behaviour.latency_s = 0.3
        mortal: Endpoint = {"name": "mortal", "kind": "openai", "base_url": self.stub.url, "concurrency": CALLS}
        with self.stack.evaluator("evaluator-mortal", [mortal]) as process:
            job_id = self.stack.run("mortal", "stub", "glue", tasks=["sst2"])
            self.stack.wait(job_id, states=[job_pb2.Job.STATE_RUNNING])
            until(lambda: len(self.stack.items(job_id)) >= 20)
            process.kill()
            process.wait()
        stored = {item.result.prompt for item in self.stack.items(job_id)}
        self.stub.behaviour.latency_s = 0.0
        with self.stack.evaluator("evaluator-second", [mortal]):
            body = self.stack.completed(job_id)
        return Killed(job_id, body, stored, Counter(prompt_of(call) for call in self.calls(self.stub)))


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("reuse")
    data_dir = write_mirror(folder / "data", ROWS)
    for owner in ("cais", "aps", "GBaker", "qiaojin"):
        if real := real_rows.folder(owner):
            (data_dir / owner).symlink_to(real)
    known = answers(Catalogue(data_dir), "glue", list(ROWS), careless)
    with stub_thread() as stubs:
        stub = stubs.start(Cutting(known))
        digests = stubs.start(OllamaServer(Behaviour(answer=by_mapping(known))))
        endpoints: list[Endpoint] = [
            {"name": "stub", "kind": "openai", "base_url": stub.url, "concurrency": 8},
            {"name": "digests", "kind": "ollama", "base_url": digests.url, "concurrency": 8, "exclusive": False},
        ]
        environment = {"TOUCHSTONE_ACK_WAIT_S": "2"}
        with running(Stack(folder, endpoints, data_dir, environment=environment), request) as stack:
            yield World(stack, stub, digests)


def scores(body: dict[str, Any]) -> dict[str, Any]:
    return {"performance": body["performance_data"], "score": body["score"]}


def test_a_killed_evaluators_unit_asks_for_no_stored_answer_again(world: World) -> None:
    killed = world.killed
    assert 20 <= len(killed.stored) < ROWS["sst2"]
    assert len(killed.calls) == ROWS["sst2"]
    twice = {prompt for prompt, calls in killed.calls.items() if calls > 1}
    assert not {f"user:\n{prompt}" for prompt in twice} & killed.stored
    # In flight, or received within the last 20 ms.
    assert len(twice) <= 2 * CALLS
    assert killed.body["reused"]["items"] == 0, "they were paid for by this very job"


def test_a_rescore_calls_nobody_and_gives_the_same_scores_although_the_endpoint_is_gone(world: World) -> None:
    source, before = world.killed.job_id, world.killed.body
    started = world.post(f"/rescore/{source}")
    assert started["source_job"] == source
    after = world.stack.completed(started["job_id"])
    assert world.calls(world.stub) == []
    assert scores(after) == scores(before)
    assert after["reused"] == {"items": ROWS["sst2"], "share": 1.0, "without_digest": False}
    assert after["receipt"] == before["receipt"] | {"source_job": source}
    assert (after["provider"], after["model_name"]) == ("mortal", "stub")
    assert after["reuse"] == {"job_id": source, "rerun": []}
    assert {item.result.calls for item in world.stack.items(started["job_id"])} == {0}


def test_unread_answers_are_read_by_a_more_lenient_layer_without_a_call(world: World) -> None:
    """A third of the answers in a marked line, a third in a box, a third in a sentence."""
    manners = ("Answer: {}", "So it is \\boxed{{{}}}", "The tone is clear.\nTherefore, the sentiment is {}.")
    said = {
        prompt: manners[place % 3].format(("positive", "negative")[place % 2])
        for place, prompt in enumerate(world.stub.known)
    }
    world.stub.behaviour.answer = by_mapping(said)
    world.calls(world.stub)
    strict = world.stack.completed(world.stack.run("stub", "stub", "glue", tasks=["sst2"], reading="strict"))
    asked = [said[prompt_of(body)] for body in world.calls(world.stub)]
    usual = world.stack.completed(world.stack.run("stub", "stub", "glue", tasks=["sst2"]))
    world.stub.behaviour.answer = by_mapping(world.stub.known)
    marked, lenient = (sum(form in text for text in asked) for form in ("boxed", "Therefore"))
    assert marked > 20 < lenient
    assert (strict["reading"], strict["data"]["sst2"]["reading"]) == ("strict", "strict")
    assert (usual["reading"], usual["data"]["sst2"]["reading"]) == (None, "lenient")
    assert strict["outcomes"]["unparsed"]["items"] == marked + lenient
    assert strict["offer"] == (
        f"The marked layer would read {marked} of the {marked + lenient} unread answers, the lenient one "
        f"{marked + lenient}."
    )
    assert (strict["offered_reading"], usual["offered_reading"]) == ("lenient", None)
    assert strict["item_set"] != usual["item_set"], "they share no board"

    world.calls(world.stub)
    shown = touchstone(world.stack, "results", strict["job_id"])
    assert f"touchstone rescore {strict['job_id']} --reading lenient" in " ".join(shown.stdout.split())
    by_command = touchstone(world.stack, "rescore", strict["job_id"], "--reading", "marked")
    assert by_command.returncode == 0, by_command.stderr
    halfway = world.stack.completed(by_command.stdout.split()[0])
    assert halfway["outcomes"]["unparsed"]["items"] == lenient
    again = world.stack.completed(world.post(f"/rescore/{strict['job_id']}", {"reading": "lenient"})["job_id"])
    assert world.calls(world.stub) == []
    assert scores(again) == scores(usual)
    assert (again["item_set"], again["receipt"]["configuration"]) == (
        usual["item_set"],
        usual["receipt"]["configuration"],
    )
    compared = world.post("/compare", {"model_ids": [strict["job_id"], usual["job_id"]]})
    why = f"re-score the stricter ones with `touchstone rescore {strict['job_id']} --reading lenient`"
    assert why in str(compared)
    with world.stack.client() as client:
        config = {"provider": "stub", "model": "stub"}
        body = {"project_id": 1, "config": config, "mode": "loglikelihood", "reading": "strict"}
        refused = client.post("/run", json=body)
    assert (refused.status_code, "no answer is read" in refused.json()["detail"]) == (400, True)


def test_a_rerun_asks_exactly_the_truncated_items_again(world: World) -> None:
    source = world.stack.run("stub", "stub", "glue", tasks=["sst2"], params={"num_predict": ROOM - 1})
    before = world.stack.completed(source)
    cut = {p for p in (prompt_of(body) for body in world.calls(world.stub)) if p in world.stub.wordy}
    assert before["outcomes"]["output_truncated"]["items"] == len(cut) > 0

    made = world.post(f"/rerun/{source}", {"outcomes": ["output_truncated"], "num_predict": ROOM})
    after = world.stack.completed(made["job_id"])
    asked = world.calls(world.stub)
    assert Counter(prompt_of(body) for body in asked) == Counter(cut)
    assert {body["max_tokens"] for body in asked} == {ROOM}
    assert after["outcomes"]["output_truncated"]["items"] == 0
    assert after["reused"]["items"] == ROWS["sst2"] - len(cut)
    assert after["receipt"]["source_job"] == source
    assert after["receipt"]["configuration"] != before["receipt"]["configuration"], "it was asked with other limits"
    whole = world.stack.completed(world.stack.run("stub", "stub", "glue", tasks=["sst2"], params={"num_predict": ROOM}))
    assert scores(after) == scores(whole)
    world.calls(world.stub)


def test_an_answer_that_was_cut_for_storage_is_not_scored_again(world: World) -> None:
    long = next(prompt for prompt in world.stub.known if prompt not in world.stub.wordy)
    world.stub.behaviour.answer = by_mapping(world.stub.known | {long: "so " * 100_000 + world.stub.known[long]})
    source = world.stack.run("stub", "stub", "glue", tasks=[*ROWS])
    assert world.stack.completed(source)["outcomes"]["infrastructure_error"]["items"] == 0
    world.stub.behaviour.answer = by_mapping(world.stub.known)
    world.calls(world.stub)
    job_id = world.post(f"/rescore/{source}")["job_id"]
    body = world.stack.completed(job_id)
    assert (body["incomplete"], body["reused"]["items"]) == (True, sum(ROWS.values()) - 1)
    (failed,) = (item.result for item in world.stack.items(job_id) if item.result.calls or not item.result.reused)
    assert failed.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    assert failed.error.startswith("Its stored answer was truncated, so it cannot be scored.")
    assert world.calls(world.stub) == []
    again = world.post(f"/rerun/{job_id}", {"outcomes": ["infrastructure_error"]})
    assert not world.stack.completed(again["job_id"])["incomplete"]
    assert [prompt_of(call) for call in world.calls(world.stub)] == [long]


def test_answers_of_any_job_are_taken_where_the_digest_is_known(world: World) -> None:
    first = world.stack.completed(world.stack.run("digests", "stub", "glue", tasks=["rte"]))
    assert len(world.calls(world.digests)) == ROWS["rte"]
    again = world.stack.run("digests", "stub", "glue", tasks=[*ROWS], reuse={"any_job": True})
    body = world.stack.completed(again)
    assert len(world.calls(world.digests)) == ROWS["sst2"], "the other task was not asked before"
    share = pytest.approx(ROWS["rte"] / sum(ROWS.values()))
    assert body["reused"] == {"items": ROWS["rte"], "share": share, "without_digest": False}
    assert body["performance_data"]["glue"]["rte"] == first["performance_data"]["glue"]["rte"]
    warm = world.stack.run(
        "digests", "stub", "glue", tasks=["rte"], reuse={"any_job": True}, params={"temperature": 0.5}
    )
    assert world.stack.completed(warm)["reused"]["items"] == 0
    assert len(world.calls(world.digests)) == ROWS["rte"], "another request has another answer"
    with world.stack.client() as client:
        config = {"provider": "stub", "model": "stub"}
        refused = client.post("/run", json={"project_id": 1, "config": config, "reuse": {"any_job": True}})
    assert (refused.status_code, "does not report which weights" in refused.json()["detail"]) == (400, True)
    source = first["job_id"]
    for mark, reason in (
        (
            {"mark": "invalidated", "reason": "wrong"},
            f"its answers come from job {source}, which was invalidated: wrong",
        ),
        ({"mark": "valid"}, None),
    ):
        with world.stack.client() as client:
            assert client.post(f"/results/{source}/mark", json=mark).status_code == 200
        assert world.stack.completed(again).get("not_ranked_reason") == reason


def test_without_a_digest_answers_are_taken_only_if_the_job_accepts_that_the_model_may_have_changed(
    world: World,
) -> None:
    unasked: dict[str, Any] = {"params": {"temperature": 0.25}, "tasks": ["rte"]}
    accepting = {"any_job": True, "without_digest": True}
    world.stack.completed(world.stack.run("stub", "stub", "glue", **unasked))
    world.calls(world.stub)
    plain = world.stack.completed(world.stack.run("stub", "stub", "glue", **unasked))
    assert (plain["reused"]["items"], len(world.calls(world.stub))) == (0, ROWS["rte"]), "the default takes none"
    again = world.stack.completed(world.stack.run("stub", "stub", "glue", **unasked, reuse=accepting))
    assert again["reused"] == {"items": ROWS["rte"], "share": 1.0, "without_digest": True}
    assert (again["reuse"], again["receipt"]["model_digest"]) == (accepting, None)
    assert world.calls(world.stub) == []
    assert again["score"]["mean"] == plain["score"]["mean"]


def test_three_answers_an_item_have_seeds_of_their_own_and_are_averaged(world: World) -> None:
    known = world.stub.known
    job_id = world.stack.run("stub", "stub", "glue", tasks=["rte"], repeats=3, params={"seed": 6, "temperature": 0.7})
    body = world.stack.completed(job_id)
    asked = world.calls(world.stub)
    assert Counter(call["seed"] for call in asked) == {6: ROWS["rte"], 7: ROWS["rte"], 8: ROWS["rte"]}
    items = world.stack.items(job_id)
    assert Counter(item.result.repeat for item in items) == {0: 40, 1: 40, 2: 40}
    assert len({item.result.identity for item in items}) == len(items)
    assert (body["repeats"], body["progress"]["items_total"]) == (3, 120)
    assert len(known) == sum(ROWS.values())
    right = {item.result.item: item.result.statistics["correct"] for item in items if item.result.repeat == 0}
    once = sum(right.values()) / len(right)
    figures = body["performance_data"]["glue"]["rte"]
    # Of three answers the first two are alike and the third, of seed 8, is nonsense.
    assert figures["accuracy"]["mean"] == pytest.approx(once * 2 / 3)
    assert figures["pass@3"]["mean"] == pytest.approx(once)


def test_the_command_line_scores_again_and_says_where_an_unknown_job_is_not(world: World) -> None:
    source = world.stack.run("stub", "stub", "glue", tasks=["rte"], limit=20)
    before = world.stack.completed(source)
    world.calls(world.stub)
    done = touchstone(world.stack, "rescore", source)
    assert done.returncode == 0, done.stderr
    job_id, *lines = done.stdout.splitlines()
    mean = before["performance_data"]["glue"]["rte"]["accuracy"]["mean"]
    (rte,) = [line.split() for line in lines if line.startswith("rte")]
    assert (rte[:3], rte[-1]) == (["rte", "accuracy", f"{mean:.4f}"], "20")
    assert "20 answers came from the store" in done.stderr
    assert world.stack.job(job_id).spec.reuse.job_id == source
    assert world.calls(world.stub) == []
    unknown = touchstone(world.stack, "rescore", "11111111-1111-1111-1111-111111111111")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "not found" in unknown.stderr


def test_the_command_line_runs_and_waits(world: World) -> None:
    model = ("--suite", "glue", "--endpoint", "baseline", "--model", "majority", "--tasks", "rte", "--limit", "10")
    done = touchstone(world.stack, "run", *model)
    assert done.returncode == 0, done.stderr
    assert "Completed" in done.stderr
    left = touchstone(world.stack, "run", *model, "--no-watch")
    assert (left.returncode, left.stderr) == (0, "")
    assert world.stack.wait(left.stdout.strip()).state == job_pb2.Job.STATE_COMPLETED
    refused = touchstone(world.stack, "run", *model, "--mode", "loglikelihood")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "does not return log-likelihoods" in refused.stderr


@pytest.mark.parametrize(
    ("suite", "owner", "tasks", "least"),
    [
        ("mmlu", "cais", None, 57),
        ("superglue", "aps", ["boolq", "cb", "copa", "rte", "wic"], 5),
        ("medical", "GBaker", ["medqa"], 1),
    ],
)
def test_the_documents_suites_run_on_real_rows(
    world: World, suite: str, owner: str, tasks: list[str] | None, least: int
) -> None:
    if not real_rows.folder(owner):
        pytest.skip(real_rows.absent(owner))
    job_id = world.stack.run("baseline", "random", suite, limit=2, tasks=tasks)
    done = world.stack.completed(job_id)
    measured = done["performance_data"][suite]
    assert len(measured) == least
    assert all(figures for figures in measured.values())
    assert done["subset"]
    assert {item.result.outcome for item in world.stack.items(job_id)} == {item_result_pb2.OUTCOME_ANSWERED}
