"""A backup during a run of the whole installation, damage, and what is there afterwards."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from deploy.local.settings import ROOT
from tests.stack import Stack, running, until
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

DONE, FAILED = job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED
GOLDEN = results_service_pb2.Annotation.VERDICT_GOLDEN


@pytest.fixture
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    down = {"name": "down", "kind": "openai", "base_url": "http://127.0.0.1:1/v1"}
    made = Stack(tmp_path, [down], environment={"TOUCHSTONE_FIRST_OUTAGE_S": "900"})
    with running(made, request):
        yield made


def touchstone(stack: Stack, *words: str, code: int = 0) -> str:
    """What an operator types, and what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    if stack.rights and words[0] == "backup":
        environment |= stack.as_service("results")
    told = subprocess.run(
        [sys.executable, "-m", "deploy.command", *words, "--state-dir", str(stack.state_dir)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == code, told.stdout + told.stderr
    return told.stdout.strip()


def annotate(stack: Stack, job_id: str, note: str) -> None:
    stored = stack.items(job_id)[0]
    request = results_service_pb2.AnnotateItemRequest(
        job_id=job_id, task=stored.task, item=stored.result.item, verdict=GOLDEN, note=note
    )
    stack.results.AnnotateItem(request, timeout=60)


def noted(stack: Stack, job_id: str) -> str:
    return stack.items(job_id)[0].annotation.note


def test_after_a_backup_during_a_run_and_a_flipped_byte_every_acknowledged_fact_is_back(stack: Stack) -> None:
    before = stack.run("baseline", "majority", "demo")
    assert stack.wait(before).state == DONE
    annotate(stack, before, "before")
    during = stack.run("baseline", "bag-of-words", "demo")
    folder = touchstone(stack, "backup").splitlines()[-1]
    assert stack.wait(during).state == DONE
    annotate(stack, during, "after")
    stored = {job_id: len(stack.items(job_id)) for job_id in (before, during)}
    assert touchstone(stack, "check").endswith("Everything can be read and is consistent.")
    stack.stop()
    assert touchstone(stack, "check") == "Everything can be read and is consistent."
    database = stack.state_dir / "results" / "touchstone.duckdb"
    content = bytearray(database.read_bytes())
    content[random.Random(3).randrange(4096)] ^= 4
    database.write_bytes(content)
    with pytest.raises(AssertionError, match=r"is damaged.*touchstone restore"):
        stack.start()
    assert "touchstone repair" in touchstone(stack, "check", code=1)
    touchstone(stack, "restore", folder)
    stack.start()
    for job_id, note in ((before, "before"), (during, "after")):
        assert stack.wait(job_id).state == DONE
        assert stack.settled(job_id)
        assert len(stack.items(job_id)) == stored[job_id]
        assert noted(stack, job_id) == note


def test_jobs_of_which_only_the_queue_still_knows_are_there_after_a_restore(stack: Stack) -> None:
    before = stack.run("baseline", "majority", "demo")
    assert stack.wait(before).state == DONE
    stack.heard(stack.job(before))
    folder = touchstone(stack, "backup").splitlines()[-1]
    after = []
    for model in ("bag-of-words", "majority"):
        after.append(stack.run("baseline", model, "demo"))
        assert stack.completed(after[-1])
    result = stack.get(f"/results/{after[0]}")
    live = stack.run("down", "m", "demo")
    stack.heard(stack.wait(live, states=[job_pb2.Job.STATE_RUNNING]))
    stack.stop()
    (block,) = (stack.state_dir / "nats").glob("jetstream/*/streams/AUDIT/msgs/*.blk")
    block.write_bytes(block.read_bytes()[: block.stat().st_size // 3])
    # Of one job the answers are gone as well.
    for path in (stack.state_dir / "nats").glob("jetstream/*/streams/RESULTS/msgs/*.blk"):
        content = path.read_bytes()
        path.write_bytes(content[: content.index(after[1].encode())])
    database = stack.state_dir / "results" / "touchstone.duckdb"
    database.write_bytes(b"\0" * 4096 + database.read_bytes()[4096:])
    touchstone(stack, "restore", folder)
    stack.start()
    for job_id in (before, after[0]):
        stack.heard(stack.job(job_id))
        assert len(stack.items(job_id)) == 1600
    until(lambda: stack.get(f"/results/{after[0]}")["score"] == result["score"])
    until(lambda: stack.job(after[1]).state == FAILED)
    assert stack.job(after[1]).reason.startswith("1,600 of 1,600 answers were lost")
    for job_id in (after[1], live):
        stack.heard(stack.job(job_id))
    assert {job["job_id"] for job in stack.get("/results", limit=50)["results"]} == {before, *after, live}
    stack.scheduler.RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=after[1]), timeout=30)
    assert stack.completed(after[1])
    stack.scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=live), timeout=30)


def test_jobs_of_a_lost_queue_end_as_failed_and_are_retried(stack: Stack) -> None:
    finished = stack.run("baseline", "majority", "demo")
    assert stack.wait(finished).state == DONE
    stack.heard(stack.job(finished))
    live = stack.run("down", "m", "demo")
    running_job = stack.wait(live, states=[job_pb2.Job.STATE_RUNNING])
    stack.heard(running_job)
    stack.stop()
    shutil.move(stack.state_dir / "nats", stack.state_dir / "nats.lost")
    stack.start()

    def ended() -> bool:
        try:
            return stack.job(live).state == FAILED
        except grpc.RpcError:
            return False

    until(ended)
    job = stack.job(live)
    assert job.reason.startswith("The queue lost this job")
    stack.heard(job)
    assert stack.scheduler.RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=live), timeout=30).job.attempt == 2
    stack.scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=live), timeout=30)
    assert len(stack.items(finished)) == 1600
    assert stack.completed(stack.run("baseline", "random", "demo"))
