"""The document's user, through REST and every process: upload, run, watch, read, compare, delete."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests import chat_lines
from tests.gateway import conformance
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import API, Endpoint, Stack, running, until
from tests.stub_thread import stub_thread

pytestmark = pytest.mark.stack

ROWS = 5000
MODEL, OTHER = "allenai/OLMo-2-1124-7B-Instruct", "other"
IN_LIST = {
    *("benchmark_id", "model_id", "model_name", "dataset_id", "dataset_name", "status", "progress", "completed"),
    *("total", "throughput", "eta_seconds", "started_at"),
}
IN_RESULTS = {*("benchmark_id", "model_name", "dataset_name", "status", "total_time_seconds", "throughput", "results")}


def conforms(response: httpx.Response) -> None:
    response.read()
    kind = response.headers.get("content-type", "").partition(";")[0]
    conformance.check(response.request.method, response.request.url.path, response.status_code, kind, response)


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    behaviour = Behaviour(answer=chat_lines.answer, latency_s=0.05, models=(MODEL, OTHER))
    with stub_thread() as stubs:
        yield stubs.start(OpenAIServer(behaviour))


@pytest.fixture(scope="module")
def stack(
    provider: OpenAIServer, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    endpoints: list[Endpoint] = [{"name": "stub", "kind": "openai", "base_url": provider.url, "concurrency": 64}]
    with running(Stack(tmp_path_factory.mktemp("benchmarks"), endpoints), request) as started:
        started.know_models("stub")
        yield started


def admin(stack: Stack) -> httpx.Client:
    return httpx.Client(base_url=stack.url, trust_env=False, timeout=60, event_hooks={"response": [conforms]})


@pytest.fixture
def client(stack: Stack) -> Iterator[httpx.Client]:
    with admin(stack) as opened:
        yield opened


def upload(client: httpx.Client, data: bytes, name: str = "batch_5k.jsonl", **options: str) -> dict[str, Any]:
    answer = client.post("/admin/datasets/upload", data=options, files={"file": (name, data)})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def run(client: httpx.Client, dataset_id: str, **more: Any) -> dict[str, Any]:
    body = {"dataset_id": dataset_id} | ({} if "model_ids" in more else {"model_id": MODEL}) | more
    answer = client.post("/admin/benchmarks/run", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def followed(client: httpx.Client, benchmark_id: str, timeout_s: float = 300) -> list[dict[str, Any]]:
    """What the list says of a run, from a moment after its start until it is finished."""
    seen: list[dict[str, Any]] = []
    ends = time.monotonic() + timeout_s
    while not seen or seen[-1]["status"] in ("pending", "running"):
        assert time.monotonic() < ends, seen[-1:]
        listed = client.get("/admin/benchmarks").json()["benchmarks"]
        seen += [row for row in listed if row["benchmark_id"] == benchmark_id]
        time.sleep(0.2)
    return seen


def test_five_thousand_chats_run_as_the_document_says(client: httpx.Client, provider: OpenAIServer) -> None:
    batch = chat_lines.lines(ROWS, "whatever the line names")
    dataset = upload(client, chat_lines.jsonl(batch), scorer="choice")
    assert (dataset["name"], dataset["count"], dataset["rows_with_reference"]) == ("batch_5k.jsonl", ROWS, ROWS)
    dataset_id = dataset["dataset_id"]
    asked_before = len(provider.records)

    made = run(client, dataset_id)
    assert set(made) >= {"benchmark_id", "status", "started_at"}
    # The list hears of the run a moment after its start.
    until(lambda: any(row["completed"] for row in client.get("/admin/benchmarks").json()["benchmarks"]))
    used = client.delete(f"/admin/datasets/{dataset_id}")
    assert (used.status_code, made["job_id"] in used.json()["detail"]) == (409, True)

    seen = followed(client, made["benchmark_id"])
    assert all(set(row) >= IN_LIST for row in seen)
    assert [row["progress"] for row in seen] == sorted(row["progress"] for row in seen)
    assert all(row["progress"] == 100 * row["completed"] // row["total"] for row in seen if row["total"])
    live = [row for row in seen if row["status"] == "running" and row["eta_seconds"] is not None]
    assert live, "a run of seconds tells its end"
    assert all(row["eta_low_seconds"] <= row["eta_seconds"] <= row["eta_high_seconds"] for row in live)
    assert any(row["throughput"] > 100 for row in live)
    done = seen[-1]
    assert (done["status"], done["progress"], done["completed"], done["eta_seconds"]) == ("completed", 100, ROWS, 0)
    assert (done["model_name"], done["dataset_name"]) == ("OLMo-2-1124-7B-Instruct", "batch_5k.jsonl")

    results = client.get(f"/admin/benchmarks/{made['benchmark_id']}/results").json()
    assert set(results) == IN_RESULTS
    assert results["total_time_seconds"] == done["total_time_seconds"] > 0
    assert results["throughput"] == pytest.approx(2 * ROWS / results["total_time_seconds"], rel=0.05)
    told = {row["custom_id"]: row["response"] for row in results["results"]}
    assert len(results["results"]) == len(told) == ROWS
    for line in batch:
        response = told[line["custom_id"]]
        content = response["body"]["choices"][0]["message"]["content"]
        assert (response["status_code"], content) == (200, chat_lines.answer(chat_lines.prompt(line)))
    assert len(provider.records) - asked_before == ROWS, "no row was asked twice"

    shown = client.get(f"/admin/benchmarks/{made['benchmark_id']}").json()
    right = sum(chat_lines.answer(chat_lines.prompt(line)).endswith(line["reference"]) for line in batch)
    assert shown["metrics"]["accuracy"]["mean"] == pytest.approx(right / ROWS, abs=1e-12)

    assert client.delete(f"/admin/datasets/{dataset_id}").status_code == 200
    assert client.get(f"/admin/datasets/{dataset_id}").status_code == 404
    assert client.delete(f"/admin/datasets/{dataset_id}").status_code == 404
    kept = client.get(f"/admin/benchmarks/{made['benchmark_id']}/results").json()
    assert kept == results
    assert followed(client, made["benchmark_id"])[-1]["dataset_name"] == "batch_5k.jsonl"


def test_pages_of_results_hold_every_row_once_and_are_filtered(client: httpx.Client) -> None:
    lines = [{"custom_id": f"c-{n}", "prompt": f"Question {n}", "metadata": {"name": f"Ünal {n}"}} for n in range(230)]
    dataset = upload(client, chat_lines.jsonl(lines))
    made = run(client, dataset["dataset_id"])
    followed(client, made["benchmark_id"])
    path, token, found = f"/admin/benchmarks/{made['benchmark_id']}/results", "", []
    while True:
        page = client.get(path, params={"page_size": 100, "page_token": token}).json()
        found += [row["custom_id"] for row in page["results"]]
        if not (token := page["next_page_token"]):
            break
    assert found == [f"c-{n}" for n in range(230)]
    filters: list[tuple[dict[str, Any], int]] = [
        ({"metadata_field": "name", "metadata_value": "ünal 22"}, 11),
        ({"query": "ünal 7"}, 11),
        ({"custom_id": "c-7"}, 1),
        ({"length_low": 100}, 0),
        ({"status": "errors"}, 0),
        ({"verdict": "none"}, 230),
    ]
    for query, count in filters:
        assert len(client.get(path, params=query).json()["results"]) == count, query
        assert client.get(path, params=query | {"page_size": 1}).json()["total"] == count, query


def test_two_models_stand_side_by_side_are_judged_scored_again_and_exported(client: httpx.Client) -> None:
    batch = chat_lines.lines(40, "x")
    dataset = upload(client, gzip.compress(chat_lines.jsonl(batch)), "batch.jsonl.gz", scorer="choice")
    made = run(client, dataset["dataset_id"], model_ids=[MODEL, f"{OTHER}@stub"], limit=30)
    ids = [one["benchmark_id"] for one in made["benchmarks"]]
    for benchmark_id in ids:
        assert followed(client, benchmark_id)[-1]["completed"] == 30
    beside = client.get(f"{API}/side-by-side", params={"job_ids": ",".join(ids), "diffs": "true", "limit": 100}).json()
    assert (beside["total"], beside["counts"]["agree"], len(beside["rows"])) == (30, 30, 30)
    row = beside["rows"][0]
    assert [item["custom_id"] for item in row["items"]] == [row["custom_id"]] * 2
    job_id, place = made["benchmarks"][0]["job_id"], row["items"][0]
    path = f"{API}/results/{ids[0]}/items/{place['task']}/{place['item']}/annotation"
    fixed = client.put(path, json={"verdict": "fix", "corrected_answer": "Answer: Z", "note": "was wrong"}).json()
    assert (fixed["annotation"]["verdict"], fixed["custom_id"]) == ("fix", row["custom_id"])
    judged = client.get(f"/admin/benchmarks/{ids[0]}/results", params={"verdict": "fix", "page_size": 5}).json()
    assert [one["custom_id"] for one in judged["results"]] == [row["custom_id"]]
    golden = client.get(f"{API}/results/{job_id}/export", params={"kind": "golden"})
    (example,) = (json.loads(line) for line in golden.text.splitlines())
    assert example["messages"][-1] == {"role": "assistant", "content": "Answer: Z"}
    output = client.get(f"{API}/results/{ids[0]}/export", params={"kind": "batch"})
    assert len({json.loads(line)["custom_id"] for line in output.text.splitlines()}) == 30

    again = client.post(f"/admin/benchmarks/{ids[0]}/rescore", json={"scorer": "contains"}).json()
    assert followed(client, again["benchmark_id"])[-1]["status"] == "completed"
    rescored = client.get(f"/admin/benchmarks/{again['benchmark_id']}").json()
    assert set(rescored["metrics"]) == {"contains"}
    assert rescored["source_benchmark"] == ids[0]
    board = client.get(f"{API}/leaderboard", params={"suite": dataset["dataset_id"], "metric": "score"}).json()
    scorings = {one["scoring"]: one["configurations"] for one in board["item_sets"]}
    assert sorted(scorings.values()) == [1, 2], "runs that are scored in different ways never rank together"


def test_rows_are_read_by_the_layers_and_the_match_that_are_chosen(
    client: httpx.Client, provider: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three answers of four stand in a box; one is stated twice, before a question of the model's own."""
    twice = "The answer is (A). Still, I say the answer is (B).\nQuestion: And then?\nThe answer is (C)."

    def said(prompt: str) -> str:
        return twice if int(prompt.rpartition(" ")[2]) % 4 == 0 else "I pick \\boxed{A}"

    monkeypatch.setattr(provider.behaviour, "answer", said)
    lines = [{"prompt": f"Pick one {n}", "reference": "A"} for n in range(40)]
    dataset = upload(client, chat_lines.jsonl(lines), scorer="choice")
    source = run(client, dataset["dataset_id"], reading="strict")["benchmark_id"]
    followed(client, source)
    asked = len(provider.records)

    def again(**body: Any) -> dict[str, Any]:
        answer = client.post(f"/admin/benchmarks/{source}/rescore", json=body)
        assert answer.status_code == 200, answer.text
        followed(client, answer.json()["benchmark_id"])
        found: dict[str, Any] = client.get(f"{API}/results/{answer.json()['benchmark_id']}").json()
        return found

    strict = client.get(f"{API}/results/{source}").json()
    items = client.get(f"{API}/results/{source}/items", params={"limit": 100}).json()["items"]
    assert sum(item["statistics"].get("would_read") == 2 for item in items) == 30
    assert strict["offer"] == "The marked layer would read 30 of the 30 unread answers, the lenient one as many."
    assert (strict["offered_reading"], strict["data"]["rows"]["reading"]) == ("marked", "strict")
    marked = again(reading="marked")
    assert (marked["offer"], marked["outcomes"]["unparsed"]["items"], marked["score"]["mean"]) == (None, 0, 0.75)
    pattern = {"scorer": "choice", "answer_pattern": r"answer is \((.)\)"}
    last, first = again(scoring=pattern), again(scoring=pattern | {"answer_match": "first"})
    figures = [one["performance_data"][dataset["dataset_id"]]["rows"]["accuracy"] for one in (last, first)]
    assert [one["mean"] for one in figures] == [0, 0.25], "what follows the model's own question does not count"
    assert [one.get("first_answer_gap") for one in figures] == [0.25, None]
    assert len(provider.records) == asked
    board = client.get(f"{API}/leaderboard", params={"suite": dataset["dataset_id"], "metric": "score"}).json()
    assert {one["scoring"] for one in board["item_sets"]} == {
        "choice; answers read by the strict layer",
        "choice; answers read by the marked layer",
        "choice; answer taken by “answer is \\((.)\\)”",
        "choice; answer taken by the first match of “answer is \\((.)\\)”",
    }
    refused = client.post(f"/admin/benchmarks/{source}/rescore", json={"scorer": "contains", "reading": "marked"})
    assert (refused.status_code, "scored by contains" in refused.json()["detail"]) == (400, True)


def test_a_pilot_tells_what_the_whole_would_take(client: httpx.Client) -> None:
    dataset = upload(client, chat_lines.jsonl(chat_lines.lines(200, "x")))
    body = {"dataset_id": dataset["dataset_id"], "model_id": MODEL, "pilot": 20}
    pilot = client.post("/admin/benchmarks/estimate", json=body).json()["pilot"]
    assert followed(client, pilot)[-1]["total"] == 20
    told = client.get(f"/admin/benchmarks/{pilot}/estimate").json()
    assert (told["items"], told["pilot_items"]) == (200, 20)
    assert told["input_tokens"]["low"] <= told["input_tokens"]["value"] <= told["input_tokens"]["high"]


def test_an_upload_that_is_cut_leaves_nothing(stack: Stack, client: httpx.Client) -> None:
    """Cut between two lines: what came would be a whole file."""
    data = chat_lines.jsonl(chat_lines.lines(2000, "x"))
    head = (
        "POST /admin/datasets/upload?name=cut.jsonl HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/jsonl",
        f"Content-Length: {2 * len(data)}",
        "",
    )
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", stack.port)) as sender:
            sender.sendall("".join(f"{line}\r\n" for line in head).encode() + data)
            time.sleep(0.3)
    time.sleep(1)
    assert client.get("/admin/datasets", params={"query": "cut.jsonl"}).json()["total"] == 0
    assert upload(client, data)["count"] == 2000


def test_hostile_files_are_refused_with_the_line_and_the_reason(client: httpx.Client) -> None:
    good = b'{"prompt": "a"}\n'
    for data, line in [
        (good + b"\xff\xfe\n", 2),
        (good + b"[" * 100_000 + b"\n", 2),
        (good + b'{"prompt": "a\n', 2),
        (good + b'{"prompt": 1}\n', 2),
        (b'{"custom_id": "a", "prompt": "a"}\n' * 2, 2),
    ]:
        refused = client.post("/admin/datasets/upload", files={"file": ("a.jsonl", data)})
        assert refused.status_code == 400, refused.text
        body = refused.json()
        assert (body["lines"][0]["line"], bool(body["lines"][0]["reason"]), body["bad_lines"]) == (line, True, 1)
    for data in (b"", b"\n\n", gzip.compress(b"\0" * 50_000_000), b"\x1f\x8b\x08nonsense"):
        refused = client.post("/admin/datasets/upload", files={"file": ("a.jsonl", data)})
        assert (refused.status_code, bool(refused.json()["detail"])) == (400, True)
