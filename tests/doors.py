"""A job's score as every door of a running stack tells it: REST, gRPC, the command's JSON, files and pages."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.stack import CALL_TIMEOUT_S, Stack, touchstone
from touchstone.v1 import comparison_pb2, metric_pb2, results_service_pb2

Figure = tuple[float, float, float]
"""The score with the ends of its interval."""


def scores(stack: Stack, suite: str, job_id: str, other: str) -> dict[str, Figure]:
    """By door. `other` is a job on the same items, to stand beside it."""
    return {
        **_rest(stack, suite, job_id, other),
        **_grpc(stack, suite, job_id, other),
        **_command(stack, suite, job_id, other),
        **_files(stack, suite, job_id),
    }


def means(stack: Stack, suite: str, job_id: str, other: str) -> dict[str, float]:
    """The score in the files that give it without its interval, or with that in words."""
    with stack.client() as client:
        text = client.get(f"{stack.url}/api/v1/benchmarking/compare?job_ids={job_id},{other}&format=csv").text
        (whole,) = (row for row in csv.DictReader(io.StringIO(text)) if not row["task"])
        jobs = csv.DictReader(io.StringIO(client.get(f"{stack.url}/overview/export?suite={suite}").text))
        return {
            "comparison as CSV": float(whole[f"value_{'a' if whole['a'] == job_id else 'b'}"]),
            "overview as CSV": float(_own(list(jobs), job_id)["score"]),
        }


def shown(stack: Stack, suite: str, job_id: str, other: str) -> dict[str, str]:
    """What stands on pages and in reports of the job's score: each row of its job, or the whole; without tags."""
    pages = {
        "jobs": "/jobs",
        "overview": f"/overview?suite={suite}&metric=score",
        "leaderboard": f"/leaderboard?suite={suite}&metric=score",
        "side by side": f"/side-by-side?jobs={job_id},{other}",
        "report of the comparison": f"/compare/report.html?jobs={job_id},{other}",
    }
    found: dict[str, str] = {}
    with stack.client() as client:
        for name, path in pages.items():
            rows = re.findall(r"<tr\b.*?</tr>", client.get(f"{stack.url}{path}").text, re.DOTALL)
            own = [_bare(row) for row in rows if f"/jobs/{job_id}" in row]
            found |= {f"{name}, row {place}" if place else name: text for place, text in enumerate(own)}
        found["job"] = _bare(client.get(f"{stack.url}/jobs/{job_id}").text)
        found["report"] = _bare(client.get(f"{stack.url}/jobs/{job_id}/report.html").text)
        compared = client.get(f"{stack.url}/compare?jobs={job_id},{other}").text
        found["compare"] = _bare(re.findall(r'<tr class="whole">.*?</tr>', compared, re.DOTALL)[0])
    return found


def _bare(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def _rest(stack: Stack, suite: str, job_id: str, other: str) -> dict[str, Figure]:
    with stack.client() as client:
        answer = client.post("/compare", json={"model_ids": [job_id, other], "metrics": ["score"]})
    board = stack.get("/leaderboard", suite=suite, metric="score")
    beside = stack.get("/side-by-side", job_ids=f"{job_id},{other}", limit=1)["runs"]
    series = stack.get("/trends", suite=suite, metric="score")["trends"]
    points = [point for one in series for point in one["points"]]
    return {
        "REST results": _of_metric(stack.get(f"/results/{job_id}")["score"]),
        "REST history": _of_row(_own(stack.get("/history")["history"], job_id)),
        "REST leaderboard": _of_row(_own([*board["leaderboard"], *board["not_ranked"]], job_id)),
        "REST compare": _of_metric(_own(answer.json()["comparison"]["models"], job_id)["scores"]["score"]),
        "REST side by side": _of_row(next(run for run in beside if run["job"]["job_id"] == job_id), "mean_score"),
        "REST trends": _of_metric(_own(points, job_id)),
    }


def _grpc(stack: Stack, suite: str, job_id: str, other: str) -> dict[str, Figure]:
    ask = stack.results
    result = ask.GetJobResult(results_service_pb2.GetJobResultRequest(job_id=job_id), timeout=CALL_TIMEOUT_S)
    listed = ask.ListJobs(results_service_pb2.ResultsServiceListJobsRequest(with_scores=True), timeout=CALL_TIMEOUT_S)
    (averages,) = (one.averages for one in listed.scores if one.job_id == job_id)
    board = ask.GetLeaderboard(
        results_service_pb2.GetLeaderboardRequest(suite=suite, metric="score"), timeout=CALL_TIMEOUT_S
    )
    compared = ask.Compare(comparison_pb2.CompareRequest(subjects=[job_id, other]), timeout=CALL_TIMEOUT_S)
    beside = ask.ListSideBySide(
        results_service_pb2.ListSideBySideRequest(job_ids=[other, job_id]), timeout=CALL_TIMEOUT_S
    )
    return {
        "gRPC result": _of_message(result.result.suite_score),
        "gRPC jobs": _of_message(next(average for average in averages if average.metric == "score")),
        "gRPC leaderboard": _of_message(next(one.score for one in board.entries if one.job_id == job_id)),
        "gRPC compare": _of_message(next(run.scores[0] for run in compared.runs if run.job_id == job_id)),
        "gRPC side by side": (
            beside.runs[1].mean_score,
            beside.runs[1].score_ci95_low,
            beside.runs[1].score_ci95_high,
        ),
    }


def _command(stack: Stack, suite: str, job_id: str, other: str) -> dict[str, Figure]:
    def said(*arguments: str) -> Any:
        made = touchstone(stack, *arguments, "--format", "json")
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    board = said("leaderboard", "--suite", suite, "--metric", "score")
    beside = said("side-by-side", job_id, other)["runs"]
    compared = said("compare", job_id, other)["runs"]
    return {
        "command results": _of_parts(said("results", job_id)["result"]["suite_score"]),
        "command history": _of_parts(_own(said("history")["history"], job_id), "score"),
        "command leaderboard": _of_parts(_own(board["entries"], job_id)["score"]),
        "command compare": _of_parts(_own(compared, job_id)["scores"][0]),
        "command side by side": _of_parts(
            next(run for run in beside if run["job"]["job_id"] == job_id), "mean_score", "score_"
        ),
    }


def _files(stack: Stack, suite: str, job_id: str) -> dict[str, Figure]:
    with stack.client() as client:
        board = client.get(f"{stack.url}/leaderboard/export?suite={suite}&metric=score").text
        job = client.get(f"/results/{job_id}/export", params={"kind": "metrics", "format": "json"}).json()
        jobs = client.get("/export", params={"kind": "jobs", "format": "json"}).json()
        rows = list(csv.DictReader(io.StringIO(client.get("/export", params={"kind": "jobs"}).text)))
    # The suite's own rule comes first.
    whole = next(row for row in job if row["metric"] == "score" and not row["task"])
    return {
        "export of a job": _of_parts(whole),
        "export of jobs": _of_parts(_own(jobs, job_id), "score", "score_"),
        "export as CSV": _of_parts(_own(rows, job_id), "score", "score_"),
        "leaderboard as CSV": _of_parts(_own(list(csv.DictReader(io.StringIO(board))), job_id), "score"),
    }


def _own(rows: Iterable[Mapping[str, Any]], job_id: str) -> Mapping[str, Any]:
    (row,) = (row for row in rows if row["job_id"] == job_id)
    return row


def _of_metric(body: Mapping[str, Any]) -> Figure:
    return _of_row(body, "mean")


def _of_row(row: Mapping[str, Any], score: str = "score") -> Figure:
    low, high = row["ci95"]
    return float(row[score]), float(low), float(high)


def _of_parts(row: Mapping[str, Any], score: str = "mean", before: str = "") -> Figure:
    return float(row[score]), float(row[f"{before}ci95_low"]), float(row[f"{before}ci95_high"])


def _of_message(metric: metric_pb2.Metric) -> Figure:
    return metric.mean, metric.ci95_low, metric.ci95_high
