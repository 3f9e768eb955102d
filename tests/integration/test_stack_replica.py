"""Pages, REST and the Python client while the results service is killed and held down."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from deploy.local.ports import free_port
from services.words.addresses import AS_OF
from tests.e2e.conftest import ARGUMENTS, chromium
from tests.stack import API, Stack, running, until
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import results_service_pb2_grpc

pytestmark = pytest.mark.stack

HEADER = "Touchstone-As-Of"
PATIENCE_MS = 60_000
MOST_S = 5.0
"""Without an answer, on a busy machine."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    environment = {
        "TOUCHSTONE_REPLICA_S": "1",
        "TOUCHSTONE_REPLICA_PORT": str(free_port()),
        "TOUCHSTONE_CALL_TIMEOUT_S": "3",
    }
    down = {"name": "down", "kind": "openai", "base_url": "http://127.0.0.1:1/v1"}
    with running(Stack(tmp_path_factory.mktemp("replica"), [down], environment=environment), request) as made:
        yield made


def _pid(stack: Stack) -> int:
    children = json.loads((stack.state_dir / "children.json").read_text())["children"]
    return next((pid for name, (pid, _) in children.items() if name == "results"), 0)


@contextmanager
def held_down(stack: Stack) -> Iterator[None]:
    """Kills the results service, and each that the launcher starts in its place."""
    over = threading.Event()
    killed: set[int] = set()

    def hold() -> None:
        while not over.wait(0.02):
            if (pid := _pid(stack)) and pid not in killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        yield
    finally:
        over.set()
        holding.join()
        print(f"\n  killed {len(killed)} times")


def _copied(stack: Stack, job_id: str) -> bool:
    """Whether the copy has the finished job."""
    variables = stack._environment
    channel = stack.channel(int(variables["TOUCHSTONE_REPLICA_PORT"]))
    try:
        asked = pb.GetJobResultRequest(job_id=job_id)
        found = results_service_pb2_grpc.ResultsServiceStub(channel).GetJobResult(asked, timeout=20)
    except grpc.RpcError:
        return False
    return bool(found.result.sealed)


def test_reads_are_answered_while_results_is_held_down(stack: Stack) -> None:
    jobs = [stack.run("baseline", model, "demo") for model in ("majority", "bag-of-words")]
    for job_id in jobs:
        stack.completed(job_id)
    until(lambda: all(_copied(stack, job_id) for job_id in jobs))
    pages = [
        "/leaderboard",
        "/jobs",
        "/overview",
        f"/jobs/{jobs[0]}",
        f"/compare?jobs={jobs[0]}&jobs={jobs[1]}",
        f"{API}/results",
        f"{API}/results/{jobs[0]}",
        f"{API}/leaderboard",
    ]
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30, follow_redirects=True) as http:
        live = {page: http.get(page, headers={"Accept": "text/html"}) for page in pages}
        assert {page: answer.status_code for page, answer in live.items()} == dict.fromkeys(pages, 200)
        assert not any(HEADER in answer.headers for answer in live.values())
        with held_down(stack):
            began = last = time.monotonic()
            silent, answers, dated = 0.0, 0, 0
            while dated < 40 and time.monotonic() - began < 120:
                page = pages[answers % len(pages)]
                answer = http.get(page, headers={"Accept": "text/html"})
                assert answer.status_code == 200, f"{page}: {answer.status_code} {answer.text[:500]}"
                now = time.monotonic()
                silent, last, answers = max(silent, now - last), now, answers + 1
                if HEADER not in answer.headers:
                    continue
                dated += 1
                at = datetime.fromisoformat(answer.headers[HEADER])
                assert at <= datetime.now(UTC)
                if not page.startswith("/api"):
                    assert f"Figures are from {at:%H:%M:%S} UTC." in answer.text
                else:
                    assert answer.json() == live[page].json()
            assert dated == 40
            print(f"  {answers} answers, longest time without one: {silent:.2f} s")
            assert silent <= MOST_S
            # What changes something is refused, as is what must be of now.
            mark = http.post(f"/jobs/{jobs[0]}/mark", data={"mark": "invalidated", "reason": "x"})
            assert mark.status_code in (403, 503)
            assert http.get("/readyz").json() == {
                "ready": True,
                "scheduler": "serving",
                "results": "not serving",
                "nats": "serving",
                "replica": "serving",
            }
        until(lambda: stack._ready() and _live(http, pages))


def _live(http: httpx.Client, pages: list[str]) -> bool:
    answers = [http.get(page, headers={"Accept": "text/html"}) for page in pages]
    return all(answer.status_code == 200 and HEADER not in answer.headers for answer in answers)


def test_an_open_page_is_drawn_again_when_results_is_back(stack: Stack) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS, timeout=PATIENCE_MS)
        page = browser.new_page(base_url=stack.url)
        page.set_default_timeout(PATIENCE_MS)
        line = page.locator("#silence")
        with held_down(stack):
            until(lambda: httpx.get(f"{stack.url}/jobs", trust_env=False, timeout=30).headers.get(HEADER))
            page.goto("/jobs")
            expect(line).to_contain_text("Figures are from")
            said = line.inner_text()
            # What the event stream tells does not replace it.
            page.wait_for_timeout(5000)
            assert line.inner_text() == said
        expect(line).to_be_hidden(timeout=PATIENCE_MS)
        assert line.get_attribute("data-as-of") is None
        # It is not drawn again and again.
        page.evaluate("() => { window.same = true; }")
        page.wait_for_timeout(3000)
        assert page.evaluate("() => window.same") is True
        browser.close()


def test_the_copy_refuses_changes_and_says_as_of_when_it_is(stack: Stack) -> None:
    channel = stack.channel(int(stack._environment["TOUCHSTONE_REPLICA_PORT"]))
    copy = results_service_pb2_grpc.ResultsServiceStub(channel)
    call = copy.ListJobs.with_call
    _, told = call(pb.ResultsServiceListJobsRequest(), timeout=30)
    at = datetime.fromisoformat(str(dict(told.initial_metadata())[AS_OF]))
    assert abs((datetime.now(UTC) - at).total_seconds()) < 600
    refusals: list[tuple[Any, Any]] = [
        (copy.MarkRun, pb.MarkRunRequest(job_id="j")),
        (copy.AnnotateItem, pb.AnnotateItemRequest(job_id="j")),
        (copy.SealJob, pb.SealJobRequest()),
        (copy.FindResponses, pb.FindResponsesRequest()),
    ]
    for method, request in refusals:
        with pytest.raises(grpc.RpcError) as refused:
            method(request, timeout=30)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


def test_kills_at_random_always_leave_a_copy(stack: Stack) -> None:
    """The service writes after each start, so most kills come while it copies."""
    folder = stack.state_dir / "results" / "replica"
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as http:
        for number in range(6):
            stack.kill("results")
            time.sleep(0.35 * number)
            assert list(folder.glob("0*.duckdb"))
            assert http.get(f"{API}/results").status_code == 200
    until(stack._ready)
