"""The OpenAPI document against the whole stack: schemathesis sends what it describes, and worse, as a user."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deploy.local.settings import ROOT
from tests.gateway import conformance
from tests.parts import NIGHTLY
from tests.stack import API, Stack, running

pytestmark = pytest.mark.stack

FORMATS = ("csv", "json", "jsonl", "parquet")
SEED = 20261120
EXAMPLES = 50 if NIGHTLY else 10
LIMIT_S = 600
SHARES = 3
"""Of the operations, in tests of their own: parts of the suite share them out."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "ignored_auth",
    "unsupported_method",
)
BASELINE = {"provider": "baselines", "model": "majority"}
READS = (
    "/results",
    "/results/{job_id}",
    "/results/{job_id}/items?limit=5",
    "/results/{job_id}/items?filter=failures&query=a&limit=5",
    "/results/{job_id}/items/{task}/{item}",
    "/results/{job_id}/logs",
    *(f"/results/{{job_id}}/export?kind={kind}&format={word}" for kind in ("metrics", "items") for word in FORMATS),
    *(f"/export?kind={kind}&format={word}" for kind in ("jobs", "metrics") for word in FORMATS),
    "/history?days=1",
    "/leaderboard?suite=demo",
    "/overview",
    "/trends?suite=demo",
    "/configurations",
    "/queue",
    "/evaluators",
    "/endpoints",
    "/models?provider=baselines",
    "/suites",
    "/schedules",
    "/webhooks",
    "/webhooks/dead",
    "/side-by-side?job_ids={benchmark_id},{other}&diffs=true",
    "/results/{benchmark_id}/items?limit=5&metadata_value=a",
    *(f"/results/{{benchmark_id}}/export?kind={kind}" for kind in ("batch", "golden")),
    "/leaderboard?suite={dataset_id}&metric=score",
    *("/queue?project_id=1", "/schedules?project_id=1", "/webhooks?project_id=1", "/configurations?project_id=1"),
    *("/admin/datasets", "/admin/datasets/{dataset_id}", "/admin/datasets/{dataset_id}/rows"),
    *("/admin/benchmarks", "/admin/benchmarks/{benchmark_id}", "/admin/benchmarks/{benchmark_id}/results"),
    *("/admin/benchmarks/{benchmark_id}/results?page_size=7", "/admin/benchmarks/{benchmark_id}/estimate?items=100"),
)


@pytest.fixture
def stack(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """One for each test, so that parts of the suite share the tests out."""
    (tmp_path / "nothing").mkdir()
    made = Stack(
        tmp_path / "openapi",
        [{"name": "baselines", "kind": "baseline", "concurrency": 4}],
        tmp_path / "nothing",
        auth="token",
        environment={
            "HF_HUB_OFFLINE": "1",  # other suites than the bundled one shall fail at once, and fetch nothing
            "TOUCHSTONE_PENDING_PER_USER": "100000",
            "TOUCHSTONE_CALL_TIMEOUT_S": "20",
            "TOUCHSTONE_STREAM_MAX_AGE_S": "1",
            "TOUCHSTONE_STREAMS_PER_USER": "1000",
            "TOUCHSTONE_WAITS_PER_USER": "1000",
            "TOUCHSTONE_WEBHOOK_TRIES": "1",
            "TOUCHSTONE_WRONG_TOKENS": "100000",
        },
    )
    with running(made, request) as started:
        yield started


def dataset_runs(stack: Stack, token: str) -> dict[str, str]:
    """A dataset with two finished runs over it, and one without any, by names as for paths."""
    lines = b"".join(
        b'{"custom_id": "c-%d", "prompt": "Question %d", "reference": "A", "metadata": {"name": "Ada"}}\n' % (n, n)
        for n in range(30)
    )
    with stack.client(token) as client:
        used, unused = (
            client.post(f"{stack.url}/admin/datasets/upload", files={"file": (name, lines)}).json()["dataset_id"]
            for name in ("used.jsonl", "unused.jsonl")
        )
        body = {"model_ids": ["majority@baselines", "echo@baselines"], "dataset_id": used}
        runs = client.post(f"{stack.url}/admin/benchmarks/run", json=body).json()["benchmarks"]
    for run in runs:
        stack.wait(run["job_id"], token=token)
    first, second = (run["benchmark_id"] for run in runs)
    return {"dataset_id": used, "benchmark_id": first, "other": second, "unused": unused}


@pytest.mark.parametrize("share", range(SHARES))
def test_no_request_is_answered_5xx_or_beside_the_document(share: int, stack: Stack, tmp_path: Path) -> None:
    with stack.client(stack.create_token("reader")) as client:
        found = client.get("/openapi.json").json()["paths"]
    paths = sorted(found.keys() - {f"{API}/openapi.json"})[share::SHARES]
    chosen = [word for path in paths for word in ("--include-path", path)]
    assert schemathesis(stack, tmp_path, "coverage,fuzzing", *chosen) == sum(len(found[path]) for path in paths)


def test_no_requests_after_each_other_are_answered_5xx_or_beside_the_document(stack: Stack, tmp_path: Path) -> None:
    assert schemathesis(stack, tmp_path, "stateful") > 0


def schemathesis(stack: Stack, folder: Path, phases: str, *chosen: str) -> int:
    """How many operations its command line has tested. It must find nothing wrong."""
    token = stack.create_token("fuzzer", "admin")
    job_id = stack.run("baselines", "majority", "demo", token=token, limit=20)
    stack.wait(job_id, token=token)
    over = dataset_runs(stack, token)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{stack.url}{API}/openapi.json"),
        *("--header", f"Authorization: Bearer {token}", "--checks", ",".join(CHECKS)),
        *("--max-examples", str(EXAMPLES), "--seed", str(SEED), "--request-timeout", "20"),
        *("--phases", phases, "--continue-on-failure", "--workers", "1", *chosen),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",  # as the seed: the same requests every time
        "SCHEMATHESIS_HOOKS": "tests.integration.openapi_hooks",
        "TOUCHSTONE_TEST_JOB": job_id,
        "TOUCHSTONE_TEST_DATASET": over["dataset_id"],
        "TOUCHSTONE_TEST_BENCHMARKS": f"{over['benchmark_id']},{over['other']}",
    }
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    tested = re.search(r"Tested: (\d+)", said)
    assert tested is not None, said
    return int(tested[1])


def test_real_answers_hold_what_the_document_names_and_no_more(stack: Stack) -> None:
    token = stack.create_token("user", "admin")
    first, second = (stack.run("baselines", model, "demo", token=token, limit=20) for model in ("majority", "random"))
    for job_id in (first, second):
        stack.wait(job_id, token=token)
    with stack.client(token) as client:
        client.event_hooks["response"].append(conforms)
        board = client.get("/leaderboard", params={"suite": "demo", "metric": "score"}).json()
        item = client.get(f"/results/{first}/items?limit=1").json()["items"][0]
        names = {"configuration": board["leaderboard"][0]["configuration"], "job_id": first}
        names |= {name: str(item[name]) for name in ("task", "item")}
        names |= dataset_runs(stack, token)
        for path in READS:
            answer = client.get(address(stack, path.format(**names)))
            assert answer.status_code == 200, f"{path}: {answer.text}"
        compared = {"model_ids": [first, second], "benchmark_suite": "demo", "metrics": ["accuracy"]}
        schedule = {"cron": "0 3 1 1 *", "job": {"project_id": 1, "suite": "demo", "config": BASELINE}}
        for method, path, body in (
            ("POST", "/compare", compared),
            ("POST", f"/results/{first}/mark", {"mark": "invalidated", "reason": "tried"}),
            ("POST", f"/results/{first}/mark", {"mark": "valid"}),
            ("PUT", "/configurations/{configuration}".format(**names), {"name": "floor", "alias": "base"}),
            ("POST", f"/rescore/{first}", {}),
            ("POST", "/webhooks", {"url": "https://hooks.invalid/"}),
            ("POST", "/schedules", schedule),
            (
                "POST",
                "/admin/benchmarks/run",
                {"model_ids": ["majority@baselines", "echo@baselines"], "dataset_id": names["dataset_id"]},
            ),
            (
                "POST",
                "/admin/benchmarks/estimate",
                {"model_id": "majority@baselines", "dataset_id": names["dataset_id"], "pilot": 5},
            ),
            ("POST", "/admin/benchmarks/{benchmark_id}/rescore".format(**names), {"scorer": "contains"}),
            ("PUT", "/results/{benchmark_id}/items/rows/3/annotation".format(**names), {"verdict": "golden"}),
            ("DELETE", "/admin/datasets/{unused}".format(**names), None),
        ):
            answer = client.request(method, address(stack, path), json=body)
            assert answer.status_code == 200, f"{method} {path}: {answer.text}"
        again = client.post(f"/rerun/{first}", json={"outcomes": ["refused"]})
        assert (again.status_code, "nothing to run again" in again.json()["detail"]) == (400, True)


def address(stack: Stack, path: str) -> str:
    """What is below /admin lies beside the client's own base."""
    return stack.url + path if path.startswith("/admin/") else path


def conforms(response: httpx.Response) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0]
    conformance.check(response.request.method, response.request.url.path, response.status_code, kind, response)


def test_nothing_is_answered_without_a_token(stack: Stack) -> None:
    token = stack.create_token("reader")
    with stack.client(token) as client:
        document = client.get("/openapi.json").json()
    with stack.client() as nobody:
        for path, methods in document["paths"].items():
            for method in methods:
                answer = nobody.request(method, stack.url + re.sub(r"{\w+}", "x", path), json={})
                assert answer.status_code == 401, f"{method} {path}: {answer.text}"
                assert answer.headers["www-authenticate"].startswith("Bearer")
                body = answer.json()
                # OpenAI's SDKs read errors in OpenAI's form.
                said = body["error"]["message"] if path.startswith("/v1/") else body["detail"]
                assert said.startswith("Send a token:")
