"""The present version starts on what released versions left behind when they were killed in every phase of a job."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import chat_lines
from tests.chaos import mirror
from tests.chaos.world import MODELS
from tests.rows import write_mirror
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import API, Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.stack

FOLDER = Path(__file__).parent
RELEASES = sorted(path.stem for path in FOLDER.glob("*.json"))
GOES_ON = ("finalizing", "running", "pending", "retried")


@pytest.fixture(params=RELEASES)
def facts(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the release had confirmed before it was killed."""
    return dict(json.loads((FOLDER / f"{request.param}.json").read_text()))


@pytest.fixture
def stack(facts: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    data_dir = tmp_path / "data"
    write_mirror(data_dir, mirror.TASKS)
    known = {question.prompt: question.answer for question in mirror.questions(data_dir)}
    behaviour = Behaviour(lambda prompt: known.get(prompt) or chat_lines.answer(prompt), models=MODELS)
    with stub_thread() as stubs:
        server = stubs.start(OpenAIServer(behaviour))
        endpoint: Endpoint = {"name": "stub", "kind": "openai", "base_url": server.url, "concurrency": 4}
        stack = Stack(tmp_path / "stack", [endpoint], data_dir, evaluators=2)
        with tarfile.open(FOLDER / f"{facts['version']}.tar.xz") as archive:
            archive.extractall(tmp_path / "kept", filter="data")
        shutil.copytree(tmp_path / "kept" / "state", stack.state_dir)
        with running(stack, request):
            yield stack


def test_every_job_of_a_released_version_goes_on_and_nothing_is_lost(stack: Stack, facts: dict[str, Any]) -> None:
    jobs = facts["jobs"]
    for phase in GOES_ON:
        ended = stack.wait(jobs[phase], 120)
        assert ended.state == job_pb2.Job.STATE_COMPLETED, f"{phase}: {ended.reason}"
        assert not ended.incomplete, phase
        items = stack.items(jobs[phase])
        assert len(items) == len({(i.task, i.result.item) for i in items}) == ended.progress.items_total, phase
    for phase, state in (("completed", "completed"), ("over rows", "completed"), ("cancelled", "cancelled")):
        assert stack.get(f"/results/{jobs[phase]}")["status"] == state, phase
    assert len(stack.items(jobs["completed"])) == facts["items"]
    assert len(stack.items(jobs["over rows"])) == facts["rows"]


def test_what_people_added_in_a_released_version_is_still_there(stack: Stack, facts: dict[str, Any]) -> None:
    jobs = facts["jobs"]
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as http:
        note = http.get(f"{API}/results/{jobs['over rows']}/items/{facts['annotated']}").json()["annotation"]
        assert (note["verdict"], note["corrected_answer"], note["note"]) == ("fix", "Answer: B", "kept")
        assert http.get(f"/admin/datasets/{facts['dataset']}").json()["count"] == facts["rows"]
        again = http.post(f"{API}/rescore/{jobs['over rows']}")
        assert again.status_code == 200, again.text
    schedules = stack.get("/schedules")["schedules"]
    assert [one["schedule_id"] for one in schedules] == [facts["schedule"]]
    assert [one["webhook_id"] for one in stack.get("/webhooks")["webhooks"]] == [facts["webhook"]]
    until(lambda: any(row["mark_reason"] == "kept" for row in exported(stack, jobs["completed"])))
    rescored = stack.wait(again.json()["job_id"])
    assert rescored.state == job_pb2.Job.STATE_COMPLETED, rescored.reason


@pytest.mark.parametrize("version", [version for version in RELEASES if version != "0.1.0"])
def test_what_a_released_version_left_behind_is_checked_before_the_first_start(version: str, tmp_path: Path) -> None:
    # Of 0.1.0, the stream KEPT is called missing: it did not exist, and what it holds must not be lost unnoticed.
    with tarfile.open(FOLDER / f"{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    command = [sys.executable, "-m", "deploy.command", "check", "--state-dir", str(tmp_path / "state")]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def exported(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    """The job's metrics as the export has them."""
    with stack.client() as client:
        answer = client.get(f"/results/{job_id}/export", params={"kind": "metrics", "format": "json"})
    return list(answer.json())
