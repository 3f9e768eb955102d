"""What users send and providers do, through every process: the API document's requests, sampling, failures, keys."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from deploy.local.ports import free_port
from services.evaluator.catalogue import Catalogue
from tests.oracle import answers, right
from tests.recompute import GLUE_METRICS
from tests.rows import write_mirror
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, Record, by_mapping
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

CANARY = "sk-canary-7f3a91c2d4"
MODEL = "mistral:latest"
CANCELLED_MODEL = "cancelled:latest"
"""Of the job that is cancelled: its last calls may come while a later test counts its own."""
WRONG_KEY = "sk-not-the-right-one"
DOCUMENT_BODY = """{
  "project_id": 1,
  "suite": "glue",
  "config": {
    "provider": "ollama",
    "model": "mistral:latest",
    "ollama_params": {
      "temperature": 0.1,
      "top_p": 0.9
    }
  }
}"""
OLLAMA_PARAMS: Mapping[str, float] = {
    "temperature": 0.7,
    "top_p": 0.85,
    "top_k": 31,
    "num_predict": 77,
    "num_ctx": 8192,
    "seed": 4711,
    "repeat_penalty": 1.15,
    "min_p": 0.05,
}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass
class World:
    """The stack and the providers around it."""

    stack: Stack
    ollama: OllamaServer
    keyed: OpenAIServer

    def sampled(self, server: OllamaServer | OpenAIServer, provider: str, params: Mapping[str, float]) -> list[Record]:
        """What the provider is asked by a short job with these parameters."""
        seen = len(asked_of(server))
        job_id = self.stack.run(provider, MODEL, "glue", tasks=["sst2"], limit=3, params=params)
        self.stack.completed(job_id)
        assert len(asked_of(server)) == seen + 3
        return asked_of(server)[seen:]


def asked_of(server: OllamaServer | OpenAIServer) -> list[Record]:
    """Its calls, without those of the jobs that ended early."""
    return [record for record in server.records if record.body["model"] == MODEL and not has_wrong_key(record)]


def has_wrong_key(record: Record) -> bool:
    return WRONG_KEY in record.headers.get("Authorization", "")


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("endpoints")
    data_dir = write_mirror(folder / "data", dict.fromkeys(sorted({task.split("_")[0] for task in GLUE_METRICS}), 12))
    answer = by_mapping(answers(Catalogue(data_dir), "glue", list(GLUE_METRICS), right))
    with stub_thread() as stubs:
        ollama = stubs.start(OllamaServer(Behaviour(answer, models=(MODEL, CANCELLED_MODEL))))
        keyed = stubs.start(OpenAIServer(Behaviour(answer, models=(MODEL,), api_key=CANARY)))
        told = Fault("400", message=f"Cannot serve the request of {CANARY} now.")
        echoing = stubs.start(OpenAIServer(Behaviour(answer, models=(MODEL,), always=told)))
        openai: Endpoint = {"kind": "openai", "concurrency": 8}
        endpoints: list[Endpoint] = [
            {"name": "ollama", "kind": "ollama", "base_url": ollama.url, "concurrency": 8},
            {"name": "keyed", "base_url": keyed.url, "api_key_env": "CANARY_KEY", **openai},
            {"name": "wrong-key", "base_url": keyed.url, "api_key_env": "WRONG_KEY", **openai},
            {"name": "no-key", "base_url": keyed.url, "api_key_env": "UNSET_KEY", **openai},
            {"name": "echoing", "base_url": echoing.url, "api_key_env": "CANARY_KEY", **openai},
            {"name": "nobody", "base_url": f"http://127.0.0.1:{free_port()}/v1", **openai},
        ]
        keys = {"CANARY_KEY": CANARY, "WRONG_KEY": WRONG_KEY}
        with running(Stack(folder, endpoints, data_dir, environment=keys), request) as stack:
            stack.completed(stack.run("ollama", MODEL, "glue"))
            yield World(stack, ollama, keyed)


# -- the API document's requests -----------------------------------------------------------------------------------


def test_the_documents_run_request_works_as_written(world: World) -> None:
    with world.stack.client() as client:
        answer = client.post("/run", content=DOCUMENT_BODY, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    body = answer.json()
    assert {"job_id", "message"} <= set(body) <= {"job_id", "message", "estimated_duration"}
    assert str(uuid.UUID(body["job_id"])) == body["job_id"]
    assert body["message"] == "Benchmarking started for suite: glue"

    results = world.stack.completed(body["job_id"])
    assert results["status"] == "completed"
    assert results["summary"]["total_evaluations"] == 9
    assert results["summary"]["benchmarks_run"] == ["glue"]
    assert results["summary"]["models_evaluated"] == 1
    assert results["summary"]["total_time_seconds"] > 0
    assert TIMESTAMP.fullmatch(results["completed_at"])
    glue = results["performance_data"]["glue"]
    assert set(glue) == set(GLUE_METRICS)
    assert glue["mrpc"]["f1"]["mean"] == 1.0
    assert isinstance(glue["cola"]["accuracy"]["std"], float)


def test_the_list_and_the_leaderboard_have_the_documents_fields(world: World) -> None:
    query: dict[str, str | int] = {"model_name": MODEL, "suite": "glue", "status": "completed", "limit": 1}
    # The list follows the audit trail, some ten milliseconds behind.
    until(lambda: world.stack.get("/results", **query)["total"])
    listed = world.stack.get("/results", **query)
    assert listed["total"] >= len(listed["results"]) == 1
    row = listed["results"][0]
    assert (row["status"], row["model_name"], row["benchmark_suite"]) == ("completed", MODEL, "glue")
    assert TIMESTAMP.fullmatch(row["created_at"])
    assert TIMESTAMP.fullmatch(row["completed_at"])
    board = world.stack.get("/leaderboard", suite="glue", metric="accuracy", limit=10)
    first = board["leaderboard"][0]
    assert (first["rank"], first["model"], first["score"], first["provider"]) == (1, MODEL, 1.0, "ollama")
    assert first["benchmark_count"] >= 1
    assert board["total_models"] >= 1
    assert TIMESTAMP.fullmatch(board["last_updated"])


def test_unknown_names_are_refused_with_the_documents_texts(world: World) -> None:
    config = {"provider": "ollama", "model": MODEL}
    unknown = str(uuid.uuid4())
    with world.stack.client() as client:
        suite = client.post("/run", json={"project_id": 1, "suite": "superduper", "config": config})
        provider = client.post("/run", json={"project_id": 1, "suite": "glue", "config": config | {"provider": "hal"}})
        kind = client.post("/run", json={"project_id": 1, "suite": "glue", "config": config | {"provider": "openai"}})
        missing = [client.get(f"/results/{unknown}"), client.post(f"/cancel/{unknown}")]
        board = client.get("/leaderboard", params={"suite": "superduper"})
        metric = client.get("/leaderboard", params={"suite": "glue", "metric": "beauty"})
    for answer in (suite, board):
        assert answer.status_code == 400
        text, _, installed = answer.json()["detail"].partition(": ")
        assert text == "Invalid benchmark suite. Supported"
        assert set(installed.split(", ")) >= {"glue", "superglue", "mmlu", "medical", "demo"}
    assert provider.status_code == kind.status_code == metric.status_code == 400
    for name in ("ollama", "keyed", "nobody", "baseline"):
        assert name in provider.json()["detail"]
    assert "keyed" in kind.json()["detail"], "several endpoints of one kind are named"
    assert "matthews_correlation" in metric.json()["detail"]
    for answer in missing:
        assert answer.status_code == 404
        assert answer.json() == {"detail": f"Benchmark job {unknown} not found"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"project_id": None}, "project_id"),
        ({"project_id": "one"}, "project_id"),
        ({"config": None}, "config"),
        ({"config": {"provider": "ollama"}}, "config.model"),
        ({"config": {"provider": "ollama", "model": MODEL, "ollama_params": {"temperature": 2.1}}}, "temperature"),
        ({"config": {"provider": "ollama", "model": MODEL, "ollama_params": {"top_p": -0.1}}}, "top_p"),
        ({"config": {"provider": "ollama", "model": MODEL, "ollama_params": {"top_k": 101}}}, "top_k"),
        ({"config": {"provider": "ollama", "model": MODEL, "ollama_params": {"heat": 1}}}, "heat"),
        ({"tasks": ["sst3"]}, "sst3"),
    ],
)
def test_a_wrong_field_is_named_and_starts_nothing(world: World, change: Mapping[str, Any], field: str) -> None:
    body = {"project_id": 1, "suite": "glue", "config": {"provider": "ollama", "model": MODEL}, **change}
    before = world.stack.get("/results")["total"]
    with world.stack.client() as client:
        answer = client.post("/run", json=body)
    assert answer.status_code == 422
    assert field in answer.json()["detail"]
    assert world.stack.get("/results")["total"] == before


def test_cancel_answers_with_the_documents_text_and_refuses_a_finished_job(world: World) -> None:
    world.ollama.behaviour.latency_s = 0.5
    try:
        job_id = world.stack.run("ollama", CANCELLED_MODEL, "glue")
        world.stack.wait(job_id, states={job_pb2.Job.STATE_RUNNING})
        with world.stack.client() as client:
            first, second = client.post(f"/cancel/{job_id}"), client.post(f"/cancel/{job_id}")
    finally:
        world.ollama.behaviour.latency_s = 0
    assert (first.status_code, first.json()) == (200, {"message": f"Job {job_id} cancelled successfully"})
    assert second.status_code == 409
    assert second.json() == {"detail": f"Job {job_id} is cancelled and cannot be cancelled."}


def test_answers_on_a_kept_connection_come_at_once(world: World) -> None:
    """Nagle's algorithm against delayed acknowledgements would cost 40 ms each, but for the first few."""
    times: list[float] = []
    with httpx.Client(trust_env=False) as client:

        def one_came_at_once() -> bool:
            started = time.perf_counter()
            assert client.get(f"{world.stack.url}/healthz").status_code == 200
            times.append(time.perf_counter() - started)
            # A busy machine can only add time.
            return len(times) > 20 and min(times[20:]) < 0.03

        until(one_came_at_once, every_s=0)


# -- sampling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [[], *([name] for name in OLLAMA_PARAMS), [*OLLAMA_PARAMS]], ids=",".join)
def test_given_sampling_parameters_reach_ollama_and_absent_ones_do_not(world: World, names: list[str]) -> None:
    """But for the temperature, which is 0 where nothing samples."""
    params = {name: OLLAMA_PARAMS[name] for name in names}
    expected = params if params.keys() & {"temperature", "top_p", "top_k", "min_p"} else params | {"temperature": 0}
    for record in world.sampled(world.ollama, "ollama", params):
        assert record.path == "/api/chat"
        assert record.body["model"] == MODEL
        assert record.body["stream"] is False
        assert record.body.get("options", {}) == expected


def test_given_sampling_parameters_reach_an_openai_server_under_its_names(world: World) -> None:
    given = {"temperature": 0.4, "top_p": 0.6, "num_predict": 55, "seed": 12}
    for record in world.sampled(world.keyed, "keyed", given):
        sent = {name: value for name, value in record.body.items() if name not in ("model", "messages", "stream")}
        limit = sent.pop("max_completion_tokens", None) or sent.pop("max_tokens")
        assert (limit, sent) == (55, {"temperature": 0.4, "top_p": 0.6, "seed": 12})
    for record in world.sampled(world.keyed, "keyed", {}):
        assert record.body.keys() - {"model", "messages", "stream"} == {"temperature"}
        assert record.body["temperature"] == 0


# -- answers -------------------------------------------------------------------------------------------------------


def test_any_answer_is_stored_as_it_came_and_a_huge_one_cut_without_harm(world: World) -> None:
    last = "Answer: positive"
    texts = [
        "",
        "\x00 zero \x00\n" + last,
        "</pre><script>alert(1)</script>\n" + last,
        "'; DROP TABLE items; --\n" + last,
        "{{ 7 * 7 }} {% raw %} %s %(x)s ${HOME}\n" + last,
        "‮right to left‬ 🜁 é é 漢字\n" + last,
        "\r\n\u2028\u2029\x85\t" + last,
        "<think>" * 500 + "negative" + "</think>" * 500 + "\n" + last,
        "Answer: " * 5_000 + "positive",
        "long " * 20_000 + "\n" + last,
        "huge " * 600_000 + "\n" + last,
        last + "\nAnswer: negative or positive",
    ]
    prompts: dict[str, str] = {}
    before, world.ollama.behaviour.answer = (
        world.ollama.behaviour.answer,
        lambda prompt: prompts.setdefault(prompt, texts[len(prompts)]),
    )
    try:
        job_id = world.stack.run("ollama", MODEL, "glue", tasks=["sst2"])
        body = world.stack.completed(job_id)
    finally:
        world.ollama.behaviour.answer = before
    assert body["performance_data"]["glue"]["sst2"]["accuracy"]["n"] == len(texts)
    for item in range(len(texts)):
        request = results_service_pb2.GetItemRequest(job_id=job_id, task="sst2", item=item)
        result = world.stack.results.GetItem(request, timeout=10).item.result
        text = prompts[_prompt(result)]
        if len(text) < 500_000:
            assert result.response == text
        else:
            assert text.startswith(result.response[:1000])
        read = "" if text in ("", texts[-1]) else "positive"
        assert (result.prediction, result.outcome == item_result_pb2.OUTCOME_ANSWERED) == (read, bool(read))
    assert len(world.stack.items(job_id)) == len(texts)
    pages = [
        httpx.get(f"{world.stack.url}/jobs/{job_id}/items/sst2/{item}", trust_env=False, timeout=10)
        for item in range(len(texts))
    ]
    assert {page.status_code for page in pages} == {200}
    assert sum("&lt;script&gt;alert(1)" in page.text for page in pages) == 1
    assert not any("<script>alert" in page.text for page in pages)


def _prompt(result: item_result_pb2.ItemResult) -> str:
    """The text sent; what is stored names the message's role before it."""
    return result.prompt.removeprefix("user:\n")


# -- providers that fail -------------------------------------------------------------------------------------------


def fails_unscored(world: World, job_id: str) -> str:
    """The reason of a job that must fail; nothing of it counts anywhere."""
    job = world.stack.wait(job_id)
    assert job.state == job_pb2.Job.STATE_FAILED
    body = world.stack.get(f"/results/{job_id}")
    assert body["status"] == "failed"
    assert body["performance_data"] == {}
    assert "score" not in body
    assert body["error"] == job.reason
    board = world.stack.get("/leaderboard", suite="glue", limit=100)
    for rows in ("leaderboard", "not_ranked"):
        assert job.spec.endpoint not in {row["provider"] for row in board[rows]}
    return job.reason


def test_a_job_on_a_refused_key_fails_with_that_reason(world: World) -> None:
    reason = fails_unscored(world, world.stack.run("wrong-key", MODEL, "glue"))
    assert "refused the key" in reason
    assert "WRONG_KEY" in reason, "the reason says what to set"
    asked = [record for record in world.keyed.records if has_wrong_key(record)]
    assert 0 < len(asked) <= 2 * 8, "a wrong key is not tried item by item"


def test_a_job_without_its_key_is_refused_with_the_documents_text_before_any_call(world: World) -> None:
    asked = len(asked_of(world.keyed))
    assert world.stack.refused("no-key", MODEL, "glue") == "AI provider error: API key not configured for no-key"
    assert len(asked_of(world.keyed)) == asked


def test_a_job_on_a_model_that_is_not_there_is_refused_with_its_name(world: World) -> None:
    world.stack.know_models("ollama")
    detail = world.stack.refused("ollama", "mistral:70b", "glue")
    assert "mistral:70b" in detail
    assert MODEL in detail, "a near name is proposed"


def test_a_job_whose_calls_are_refused_fails_with_the_providers_words(world: World) -> None:
    reason = fails_unscored(world, world.stack.run("echoing", MODEL, "glue"))
    assert "Cannot serve the request" in reason


def test_failed_jobs_leave_the_leaderboard_as_it_was(world: World) -> None:
    before = world.stack.get("/leaderboard", suite="glue")
    fails_unscored(world, world.stack.run("wrong-key", MODEL, "glue"))
    assert world.stack.get("/leaderboard", suite="glue") == before


# -- keys ----------------------------------------------------------------------------------------------------------


def test_a_key_leaks_into_no_log_store_database_or_answer(world: World) -> None:
    """Last in this module, as it stops the stack to read its files."""
    stack = world.stack
    job_ids = [stack.run(name, MODEL, "glue", tasks=["sst2"]) for name in ("keyed", "echoing", "wrong-key")]
    for job_id in job_ids:
        stack.wait(job_id)
        stack.get(f"/results/{job_id}")
    assert any(CANARY in record.headers["Authorization"] for record in world.keyed.records), "the key was used"
    told = [str(item) for job_id in job_ids for item in stack.items(job_id)]
    told += [str(stack.job(job_id)) for job_id in job_ids]
    told.append(str(stack.scheduler.ListEvaluators(scheduler_service_pb2.ListEvaluatorsRequest())))
    told.append(str(stack.scheduler.ListEndpoints(scheduler_service_pb2.ListEndpointsRequest())))
    told.append(str(stack.results.ListEvents(results_service_pb2.ListEventsRequest(page_size=1000))))
    pages = ["/", "/leaderboard", *(f"/jobs/{job_id}" for job_id in job_ids)]
    told += [httpx.get(f"{stack.url}{page}", trust_env=False, follow_redirects=True).text for page in pages]
    stack.stop()

    files = [path for path in (*stack.state_dir.rglob("*"), *stack.folder.glob("*.log")) if path.is_file()]
    contents = {path: path.read_bytes() for path in files}
    rows = _database_text(stack.state_dir / "results" / "touchstone.duckdb")
    # What is known to be there must be found, or the search would prove nothing.
    assert any(b"Decide whether" in content for path, content in contents.items() if "nats" in path.parts)
    assert "Decide whether" in rows
    assert any("gateway" in path.name for path in files)

    assert not [str(path) for path, content in contents.items() if CANARY.encode() in content]
    assert CANARY not in rows
    assert not [text for text in (*told, *stack.responses) if CANARY in text]


def _database_text(path: Path) -> str:
    """Every value of every table: DuckDB's file itself is compressed."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        # Blobs hold serialised messages, whose texts are plain bytes.
        return "\n".join(
            str(value)
            for (table,) in tables
            for row in connection.execute(f'SELECT * FROM "{table}"').fetchall()
            for value in row
        )
