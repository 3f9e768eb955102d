"""Datasets with the command and the Python client, through every process: uploaded, run, read, compared, priced."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, running, touchstone
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2
from touchstone_client import AsyncClient, Client, InvalidError, Scoring, Settings, StateError

pytestmark = pytest.mark.stack

ROWS = 200
WRONG = 40
"""Rows that the poor model gets wrong, the first ones."""


def number_of(prompt: str) -> int:
    return int(prompt.rstrip("?").split()[-1])


def good(prompt: str) -> str:
    return f"Answer: {number_of(prompt) * 2}"


def poor(prompt: str) -> str:
    number = number_of(prompt)
    return f"Answer: {number * 2 + (number < WRONG)}"


def lines(count: int = ROWS) -> bytes:
    """Twice every number, with whose question it is; the ids are not the numbers of the rows."""
    rows = (
        {
            "custom_id": f"candidate-{number}",
            "prompt": f"What is twice {number}?",
            "reference": str(number * 2),
            "metadata": {"name": "Ada" if number % 2 else "Grace", "number": number},
        }
        for number in range(count)
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@dataclass
class World:
    """One dataset, and a run of each of two models over it."""

    stack: Stack
    folder: Path
    dataset: str
    good: str
    poor: str
    said: str

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return touchstone(self.stack, *arguments)

    def done(self, *arguments: str) -> str:
        made = self.command(*arguments)
        assert made.returncode == 0, made.stderr + self.stack.tails()
        return made.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.done(*arguments, "--format", "json"))

    @property
    def settings(self) -> Settings:
        port = self.stack.scheduler_port, self.stack.results_port
        return Settings(scheduler=f"127.0.0.1:{port[0]}", results=f"127.0.0.1:{port[1]}")

    def upload(self, content: bytes, *arguments: str, name: str = "more.jsonl") -> subprocess.CompletedProcess[str]:
        file = self.folder / name
        file.write_bytes(content)
        return self.command("dataset", "upload", str(file), *arguments)


def endpoint(name: str, url: str) -> Endpoint:
    return {
        "name": name, "kind": "openai", "base_url": url, "concurrency": 16, "prices.input": 2.0, "prices.output": 10.0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("datasets")
    with stub_thread() as stubs:
        left = stubs.start(OpenAIServer(Behaviour(answer=good, models=("good",))))
        right = stubs.start(OpenAIServer(Behaviour(answer=poor, models=("poor",))))
        stack = Stack(folder, [endpoint("left", left.url), endpoint("right", right.url)])
        with running(stack, request):
            stack.know_models("left", "right")
            made = World(stack, folder, "", "", "", "")
            stored = made.upload(gzip.compress(lines()), "--scorer", "numeric", name="twice.jsonl.gz")
            assert stored.returncode == 0, stored.stderr + stack.tails()
            made.dataset, made.said = stored.stdout.strip(), stored.stderr
            ran = made.command(
                "run", "--dataset", made.dataset, "--model", "good", "--model", "poor@right", "--label", "why=test"
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr + stack.tails()
            made.good, made.poor, *_ = ran.stdout.splitlines()
            yield made


def test_an_upload_says_what_was_kept(world: World) -> None:
    assert world.dataset.startswith("ds_")
    assert f"{ROWS} rows" in world.said
    assert f"{ROWS} with a reference, scored by numeric" in world.said
    (listed,) = world.json("dataset", "list", "--query", "TWICE")
    assert (listed["dataset_id"], listed["rows"], listed["format"]) == (world.dataset, ROWS, "lines")
    shown = world.json("dataset", "show", world.dataset)
    assert (shown["metadata_fields"], shown["live_jobs"]) == (["name", "number"], 0)
    rows = world.json("dataset", "rows", world.dataset, "--limit", "150")
    assert len(rows) == 150
    assert (rows[149]["custom_id"], rows[149]["metadata"]["number"]) == ("candidate-149", 149)


def test_both_models_are_scored_and_listed(world: World) -> None:
    scores = {row["model_name"]: row for row in world.json("list", "--suite", world.dataset)}
    assert {name: row["score"] for name, row in scores.items()} == {"good": 1.0, "poor": 1 - WRONG / ROWS}
    assert {row["dataset_name"] for row in scores.values()} == {world.json("dataset", "show", world.dataset)["name"]}
    assert "label why" in world.done("status", world.good)
    board = world.json("leaderboard", "--suite", world.dataset, "--metric", "score")["entries"]
    assert [entry["model"] for entry in board] == ["good", "poor"]


def test_a_parquet_file_of_another_project_is_checked_kept_and_run(world: World) -> None:
    rows = [{"instruction": f"What is twice {n}?", "input": "", "output": str(n * 2)} for n in range(50)]
    file = world.folder / "sums.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    reading = "Parquet, read as Alpaca: prompt from instruction and input, reference from output"
    checked = world.json("dataset", "check", str(file))
    assert (checked["dataset"]["reading"], checked["rows_found"], checked["dataset"]["rows"]) == (reading, 50, 50)
    before = len(world.json("dataset", "list"))
    made = world.done("dataset", "upload", str(file), "--scorer", "numeric").strip()
    assert len(world.json("dataset", "list")) == before + 1
    assert world.json("dataset", "show", made)["reading"] == reading
    world.done("run", "--dataset", made, "--model", "good")
    assert {row["score"] for row in world.json("list", "--suite", made)} == {1.0}

    rows[7]["instruction"] = ""
    pq.write_table(pa.Table.from_pylist(rows), file)
    refused = world.command("dataset", "check", str(file))
    assert (refused.returncode, "49 of 50 rows fit" in refused.stdout) == (2, True)


def test_bad_lines_are_told_and_nothing_is_kept(world: World) -> None:
    content = lines(3) + b'{"custom_id": "candidate-1", "prompt": "again"}\n{"prompt": \n'
    made = world.upload(content, name="bad.jsonl")
    assert (made.returncode, made.stdout) == (2, "")
    # One line has each of the two faults.
    told = [line.split() for line in made.stderr.splitlines()[2:4]]
    assert [(words[0], words[-1]) for words in told] == [("1", "4"), ("1", "5")]
    assert world.json("dataset", "list", "--query", "bad.jsonl") == []
    with Client(world.settings) as client, pytest.raises(InvalidError) as raised:
        client.upload_dataset(content)
    assert [bad.line for bad in raised.value.lines] == [4, 5]


def test_columns_become_messages_by_a_template(world: World) -> None:
    csv = b"number,answer\n" + b"".join(b"%d,%d\n" % (number, 2 * number) for number in range(10))
    template = world.folder / "prompt.txt"
    template.write_text("What is twice {{number}}?")
    made = world.upload(csv, "--template", f"@{template}", "--reference-field", "answer", name="twice.csv")
    assert made.returncode == 0, made.stderr
    first, *_ = world.json("dataset", "rows", made.stdout.strip())
    assert first["messages"] == [{"role": "user", "content": "What is twice 0?"}]
    assert world.done("dataset", "delete", made.stdout.strip())
    assert world.command("dataset", "show", made.stdout.strip()).returncode == 2


def test_rows_are_found_by_what_they_hold(world: World) -> None:
    wrong = world.json("items", world.poor, "--score", "0", "--limit", "500")
    assert {row["custom_id"] for row in wrong} == {f"candidate-{number}" for number in range(WRONG)}
    of_ada = world.json("items", world.poor, "--score", "0", "--metadata", "name=ada", "--limit", "500")
    assert len(of_ada) == WRONG // 2
    (one,) = world.json("items", world.poor, "--custom-id", "candidate-17")
    assert one["response"] == poor("What is twice 17?")
    assert len(world.json("items", world.poor, "--length", "..9", "--limit", "500")) == 5


def test_answers_stand_side_by_side_with_what_differs(world: World) -> None:
    jobs = (world.good, world.poor)
    told = world.json("side-by-side", *jobs, "--filter", "only-right", "--only", world.good, "--diff", "--limit", "60")
    assert told["total_size"] == len(told["rows"]) == WRONG
    assert [run["only_right"] for run in told["runs"]] == [WRONG, 0]
    assert told["count_agree"] == ROWS - WRONG
    text = world.done("side-by-side", *jobs, "--custom-id", "candidate-17", "--diff")
    assert "Answer: [-34-]{+35+}" in text


def test_an_annotated_row_is_exported_as_an_example(world: World) -> None:
    world.done("annotate", world.poor, "candidate-3", "fix", "--answer", "Answer: 6", "--note", "Off by one.")
    world.done("annotate", world.poor, "candidate-90", "golden")
    world.done("annotate", world.poor, "candidate-91", "wrong")
    verdicts = {
        row["custom_id"]: row["verdict"]
        for row in world.json("items", world.poor, "--verdict", "fix", "--verdict", "golden")
    }
    assert verdicts == {"candidate-3": "fix", "candidate-90": "golden"}
    examples = [json.loads(line) for line in world.done("export", world.poor, "--kind", "golden").splitlines()]
    assert sorted(example["messages"][-1]["content"] for example in examples) == ["Answer: 180", "Answer: 6"]
    world.done("annotate", world.poor, "candidate-90", "none")
    assert len(world.done("export", world.poor, "--kind", "golden").splitlines()) == 1


def test_a_batch_export_has_every_row_once(world: World) -> None:
    file = world.folder / "output.jsonl"
    world.done("export", "batch", "--job", world.good, "--output", str(file))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(row["custom_id"] for row in rows) == sorted(f"candidate-{number}" for number in range(ROWS))
    assert rows[0]["response"]["body"]["choices"][0]["message"]["content"].startswith("Answer: ")


def test_a_rescore_scores_in_another_way_without_a_call(world: World) -> None:
    job = world.done("rescore", world.poor, "--scorer", "contains").splitlines()[0]
    metrics = world.json("results", job)["result"]["tasks"][0]["metrics"]
    assert (metrics[0]["metric"], metrics[0]["mean"]) == ("contains", 1 - WRONG / ROWS)
    facts = [row["fact"] for row in world.json("receipt", world.poor, job)]
    assert {"scoring", "item set", "answers from"} <= {*facts}
    assert "configuration" not in facts


def test_receipts_of_two_models_differ_in_the_model(world: World) -> None:
    rows = {row["fact"]: (row["first"], row["second"]) for row in world.json("receipt", world.good, world.poor)}
    assert rows["model"] == ("good", "poor")
    assert "item set" not in rows


def test_an_estimate_is_near_what_the_run_then_takes(world: World) -> None:
    (told,) = world.json("estimate", "--dataset", world.dataset, "--model", "good", "--max-tokens", "20")
    assert (told["items"], told["pilot_items"]) == (ROWS, 30)
    whole = world.json("results", world.good)["result"]
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        assert told[name]["low"] <= told[name]["value"] <= told[name]["high"]
        assert told[name]["value"] == pytest.approx(whole[name], rel=0.1)
    text = world.done("estimate", "--dataset", world.dataset, "--model", "good", "--limit", "100")
    assert "100 items, learned from 30" in text


def test_a_budget_that_is_too_small_ends_the_job_and_a_rerun_goes_on(world: World) -> None:
    what = ("--dataset", world.dataset, "--model", "good", "--max-tokens", "50", "--temperature", "0.5")
    made = world.command("run", *what, "--budget-usd", "0.004")
    assert made.returncode == 1
    job = made.stdout.splitlines()[0]
    assert "0.004" in made.stderr
    assert 0 < world.json("status", job)["progress"]["items_done"] < ROWS
    again = world.command("rerun", job, "--outcome", "error", "--budget-usd", "5")
    assert again.returncode == 0, again.stderr
    assert "answers came from the store" in again.stderr


def test_jobs_are_named_by_their_ends_and_by_other_apis_ids(world: World) -> None:
    for word in (world.good[-12:], world.good.replace("-", ""), f"bm_{world.good.replace('-', '')}"):
        assert world.json("status", word)["job_id"] == world.good
    assert world.json("status", "last")["job_id"] == world.json("list", "--limit", "1")[0]["job_id"]
    compared = world.json("compare", world.good[-12:], world.poor[-12:])
    assert {run["job_id"] for run in compared["runs"]} == {world.good, world.poor}


def test_all_live_jobs_are_followed_to_their_end(world: World) -> None:
    jobs = world.done(
        "run", "--dataset", world.dataset, "--model", "good", "--model", "poor", "--temperature", "0.7", "--no-watch"
    ).splitlines()  # fmt: skip
    assert len(jobs) == 2
    assert world.command("status", "--watch").returncode == 0
    assert {world.json("status", job)["status"] for job in jobs} == {"completed"}
    assert world.json("status") == []


async def test_the_awaited_client_keeps_runs_and_reads(world: World) -> None:
    async with AsyncClient(world.settings) as client:
        dataset = await client.upload_dataset(lines(20), name="small.jsonl", scoring=Scoring(scorer="contains"))
        jobs = await client.run_dataset(dataset.dataset_id, ["good", "poor"], request_id="once")
        assert [
            job.job_id for job in await client.run_dataset(dataset.dataset_id, ["good", "poor"], request_id="once")
        ] == [job.job_id for job in jobs]
        states = [(await client.wait(job.job_id)).state for job in jobs]
        assert states == [job_pb2.Job.STATE_COMPLETED] * 2
        pages = client.side_by_side([job.job_id for job in jobs], page_size=8)
        assert [len(page.rows) async for page in pages] == [8, 8, 4]
        told = await client.dataset(dataset.dataset_id)
        assert told.live_jobs + told.finished_jobs == 2, "how a job ended is heard a moment later"
        assert (await client.delete_dataset(dataset.dataset_id)).finished_jobs == 2
        assert [stored async for stored in client.items(jobs[0].job_id)]


def test_a_dataset_in_use_is_kept(world: World) -> None:
    with Client(world.settings) as client:
        dataset = client.upload_dataset(lines(5000), name="used.jsonl")
        (job,) = client.run_dataset(dataset.dataset_id, ["good"], priority="low")
        with pytest.raises(StateError, match=job.job_id):
            client.delete_dataset(dataset.dataset_id)
        client.cancel(job.job_id)
        client.delete_dataset(dataset.dataset_id)


def test_a_large_file_is_kept_within_the_time_of_a_command(world: World) -> None:
    """In how many seconds is measured elsewhere, on a machine that is not shared."""
    made = world.upload(lines(50_000), name="large.jsonl")
    assert made.returncode == 0, made.stderr
    assert world.done("dataset", "delete", made.stdout.strip())
