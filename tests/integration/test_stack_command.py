"""The command and the Python client through every process: tokens are asked for, and all gRPC is under mutual TLS."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from services.evaluator.catalogue import Catalogue
from tests.certificates import Certificates, make
from tests.oracle import answers, inverted
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, by_mapping
from tests.stack import Endpoint, Stack, running, touchstone, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2
from touchstone_client import AsyncClient, Client, NotAllowedError, NotFoundError, Settings, suite_spec

pytestmark = pytest.mark.stack

MODELS = ("majority", "random", "bag-of-words")
ITEMS = 1600
"""Of the demo suite."""


@dataclass
class World:
    """`jobs` has one finished run of the demo suite for each bundled baseline, and of a model that is always wrong."""

    stack: Stack
    certificates: Certificates
    alice: str
    admin: str
    jobs: dict[str, str]

    def command(self, *arguments: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        token = self.alice if token is None else token
        return touchstone(self.stack, *arguments, token=token, environment=self.certificates.client)

    def json(self, *arguments: str) -> Any:
        made = self.command(*arguments, "--format", "json")
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    @property
    def settings(self) -> Settings:
        return Settings(
            scheduler=f"127.0.0.1:{self.stack.scheduler_port}",
            results=f"127.0.0.1:{self.stack.results_port}",
            token=self.alice,
            tls_ca=self.certificates.path("ca.pem"),
            tls_client_cert=self.certificates.path("client.pem"),
            tls_client_key=self.certificates.path("client.key"),
        )

    def rest(self, path: str, **query: str | int) -> Any:
        with self.stack.client(self.alice) as client:
            answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("command")
    certificates = make(folder / "certificates")
    environment = {**certificates.server, "TOUCHSTONE_WEBHOOKS_PRIVATE": "1"}
    demo = next(suite for suite in Catalogue().suites() if suite.suite == "demo")
    known = answers(Catalogue(), "demo", [task.task for task in demo.tasks], inverted)
    with stub_thread() as stubs:
        server = stubs.start(OpenAIServer(Behaviour(answer=by_mapping(known))))
        endpoint: Endpoint = {"name": "wrong", "kind": "openai", "base_url": server.url, "concurrency": 16}
        stack = Stack(folder, [endpoint], auth="token", environment=environment)
        yield from _world(stack, request, certificates)


def _world(stack: Stack, request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[World]:
    with running(stack, request):
        alice, admin = stack.create_token("alice"), stack.create_token("root", "admin")
        made = World(stack, certificates, alice, admin, {})
        for provider, model in (("wrong", "stub"), *(("baseline", model) for model in MODELS)):
            done = made.command("run", "--suite", "demo", "--provider", provider, "--model", model, "--project-id", "7")
            assert done.returncode == 0, f"{done.stderr}\n{stack.tails()}"
            made.jobs[model] = done.stdout.splitlines()[0]
        # Lists follow the jobs by a moment.
        until(lambda: made.rest("/results", status="completed")["total"] == len(made.jobs))
        yield made


def test_without_a_certificate_nobody_answers(world: World) -> None:
    bare = touchstone(world.stack, "queue", token=world.alice)
    assert (bare.returncode, bare.stdout) == (3, "")
    half = {"TOUCHSTONE_TLS_CA": world.certificates.path("ca.pem")}
    assert touchstone(world.stack, "queue", token=world.alice, environment=half).returncode == 3


def test_without_a_token_nobody_is_let_in(world: World) -> None:
    made = world.command("queue", token="")
    assert made.returncode == 2
    assert "TOUCHSTONE_TOKEN" in made.stderr
    with Client(world.settings, token="wrong") as client, pytest.raises(NotAllowedError):
        client.queue()


def test_the_figures_are_those_of_rest_and_of_the_client(world: World) -> None:
    job = world.jobs["bag-of-words"]
    tasks = {task["task"]: task["metrics"] for task in world.json("results", job)["result"]["tasks"]}
    rest = world.rest(f"/results/{job}")["performance_data"]["demo"]
    with Client(world.settings) as client:
        result = client.result(job)
    checked = 0
    for task in result.tasks:
        for metric, shown in zip(task.metrics, tasks[task.task], strict=True):
            told = rest[task.task][metric.metric]
            assert shown["mean"] == metric.mean == told["mean"]
            assert [shown["ci95_low"], shown["ci95_high"]] == told["ci95"]
            checked += 1
    assert checked == 6


def test_lists_and_histories_have_every_run_with_its_score(world: World) -> None:
    listed = world.json("list", "--suite", "demo", "--status", "completed", "--project-id", "7")
    assert {row["job_id"] for row in listed} >= {*world.jobs.values()}
    history = world.json("history", "--days", "1", "--model", "majority")
    assert history["total_runs"] == len(history["history"]) >= 1
    assert history["date_range"] == "Last 1 day"
    with Client(world.settings) as client:
        scores = {job_id: client.result(job_id).suite_score.mean for job_id in world.jobs.values()}
    assert {row["job_id"]: row["score"] for row in listed if row["job_id"] in scores} == scores


def test_the_leaderboard_is_that_of_rest(world: World) -> None:
    asked = {"suite": "demo", "metric": "accuracy"}
    board = world.json("leaderboard", "--suite", "demo", "--metric", "accuracy")
    rest = world.rest("/leaderboard", **asked)
    rows = [(row["rank"], row["model"], row["score"]["mean"]) for row in board["entries"]]
    assert rows == [(row["rank"], row["model"], row["score"]) for row in rest["leaderboard"]]
    assert board["total_models"] == rest["total_models"] == 1, "baselines are the floor, whatever they score"
    assert rows[0] == (1, "stub", 0.0)
    assert {(rank, model) for rank, model, _ in rows[1:]} == {(None, model) for model in MODELS}


def test_baselines_alone_are_ranked_and_their_places_come_with_the_first_answer_or_soon(world: World) -> None:
    asked = {"suite": "demo", "metric": "accuracy", "endpoint": "baseline"}
    until(lambda: not world.rest("/leaderboard", **asked)["places_pending"])
    rest = world.rest("/leaderboard", **asked)
    assert ([row["rank"] for row in rest["leaderboard"]], rest["total_models"]) == ([1, 2, 3], 3)
    assert all(row["rank_range"] for row in rest["leaderboard"])


def test_names_that_nobody_knows_are_refused_at_every_door(world: World) -> None:
    for arguments in (["list"], ["history"], ["export", "jobs"], ["leaderboard"]):
        made = world.command(*arguments, "--suite", "nope")
        assert made.returncode == 2, made.stdout
        assert "Invalid benchmark suite. Supported: glue, superglue, mmlu, medical, " in made.stderr
    with world.stack.client(world.alice) as client:
        for path in ("/results", "/history", "/export", "/overview", "/trends", "/leaderboard"):
            answer = client.get(path, params={"suite": "nope"})
            assert (answer.status_code, answer.json()["detail"] in made.stderr) == (400, True), path
        answer = client.get("/leaderboard", params={"suite": "demo", "item_set": "zz"})
    assert (answer.status_code, "No finished run of demo uses the item set 'zz'" in answer.text) == (400, True)


def test_a_score_can_be_recomputed_from_exported_items(world: World, tmp_path: Path) -> None:
    job, file = world.jobs["bag-of-words"], tmp_path / "items.csv"
    made = world.command("export", "items", "--job", job, "--task", "sentiment", "--output", str(file))
    assert made.returncode == 0, made.stderr
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    right = sum(row["prediction"] == row["reference"] for row in rows)
    shown = world.json("results", job)["result"]["tasks"]
    (sentiment,) = [task for task in shown if task["task"] == "sentiment"]
    assert right / len(rows) == pytest.approx(sentiment["metrics"][0]["mean"], abs=1e-12)


async def test_the_awaited_client_runs_follows_and_reads(world: World) -> None:
    spec = suite_spec("demo", endpoint="baseline", model="random", tasks=["sentiment"], limit=120)
    async with AsyncClient(world.settings) as client:
        job = await client.run(spec, "once")
        assert (await client.run(spec, "once")).job_id == job.job_id
        states = [state.state async for state in client.watch(job.job_id)]
        assert states[-1] == job_pb2.Job.STATE_COMPLETED
        items = [stored async for stored in client.items(job.job_id)]
        assert len({stored.result.item for stored in items}) == len(items) == 120
        assert [line.text async for line in client.logs(job.job_id)]
        with pytest.raises(NotFoundError):
            await client.job("11111111-1111-1111-1111-111111111111")


def test_a_comparison_is_that_of_rest(world: World) -> None:
    compared = world.json("compare", "majority", "bag-of-words", "--suite", "demo")
    (suite,) = [found for found in compared["differences"] if not found["task"] and found["metric"] == "score"]
    assert suite["a"] == world.jobs["bag-of-words"]
    assert (suite["verdict"], suite["difference"] > 0) == ("better", True)
    assert suite["low"] < suite["difference"] < suite["high"]
    report = world.command("compare", *world.jobs.values(), "--format", "markdown")
    assert report.returncode == 0, report.stderr
    assert "## Task by task" in report.stdout


def gate(world: World, model: str, baseline: str, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--suite", "demo", "--provider", "baseline", "--model", model, "--baseline", baseline]
    return world.command("gate", *arguments, "--max-drop", "0.01", *more)


def test_a_better_model_passes_the_gate(world: World, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    made = gate(world, "bag-of-words", "majority", "--junit", str(file), "--format", "json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["gate"]["outcome"] == "passed"
    assert f"baseline: job {world.jobs['majority']}" in made.stderr
    assert f"On {ITEMS:,} items the gate can prove" in made.stderr
    root = ElementTree.parse(file).getroot()
    assert [case.attrib["name"] for case in root] == ["suite", "sentiment", "acceptability", "entailment", "paraphrase"]
    assert root.attrib["failures"] == root.attrib["errors"] == "0"


def test_a_worse_model_does_not(world: World, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    made = gate(world, "majority", world.jobs["bag-of-words"], "--junit", str(file))
    assert made.returncode == 1, made.stderr
    assert "Gate: regression." in made.stdout
    assert int(ElementTree.parse(file).getroot().attrib["failures"]) >= 1


def test_the_same_model_again_passes(world: World) -> None:
    assert gate(world, "majority", "majority").returncode == 0


def test_few_items_tell_nothing(world: World) -> None:
    made = gate(world, "random", world.jobs["random"], "--seed", "5", "--limit", "20")
    assert made.returncode == 2, made.stdout + made.stderr
    assert "exit code 2 (undecided) is likely" in made.stderr


def test_a_gate_without_a_baselines_run_is_refused(world: World) -> None:
    made = gate(world, "majority", "nobody")
    assert made.returncode == 4
    assert "has no complete run of demo" in made.stderr


def test_schedules_and_webhooks_come_and_go(world: World) -> None:
    what = ("--suite", "demo", "--endpoint", "baseline", "--model", "majority")
    made = world.command("schedules", "create", "0 3 1 1 *", "--label", "yearly", *what)
    assert made.returncode == 0, made.stderr
    schedule = made.stdout.strip()
    assert [row["schedule_id"] for row in world.json("schedules", "list")] == [schedule]
    assert world.command("schedules", "delete", schedule).returncode == 0
    assert world.json("schedules", "list") == []
    made = world.command("webhooks", "create", "http://127.0.0.1:9/hook", "--event", "job.failed")
    assert made.returncode == 0, made.stderr
    webhook, secret = made.stdout.split()
    assert secret
    assert [row["webhook_id"] for row in world.json("webhooks", "list")] == [webhook]
    assert world.command("webhooks", "delete", webhook).returncode == 0


def test_a_configuration_is_named_and_then_known_by_it(world: World) -> None:
    (found,) = world.json("configurations", "list", "--model", "bag-of-words")
    made = world.command("configurations", "name", found["configuration"], "--alias", "prod", token=world.admin)
    assert made.returncode == 0, made.stderr
    made = gate(world, "bag-of-words", "prod")
    assert made.returncode == 0, made.stderr


def test_tokens_are_made_where_the_services_are(world: World) -> None:
    def token(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"TOUCHSTONE_STATE_DIR": str(world.stack.state_dir), **world.certificates.client}
        return touchstone(world.stack, "token", *arguments, environment=environment)

    made = token("create", "--user", "bob", "--label", "ci")
    assert made.returncode == 0, made.stderr
    assert world.command("queue", token=made.stdout.split()[0]).returncode == 0
    assert "bob" in token("list").stdout
    assert token("revoke", "ci").returncode == 0
    assert token("revoke", "ci").returncode == 2
