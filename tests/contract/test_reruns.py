"""Another run of some items of a job, and the labels that jobs keep."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.backends import Backend
from tests.contract.things import MODEL, SILENT, Things, Twin, new_project, run, upload

LABELS = {"team": "search", "why": "weekly check"}


def test_a_stopped_job_is_run_again_with_its_labels(backend: Backend) -> None:
    source = run(backend, new_project(), SILENT, labels=LABELS, priority="high")
    backend.begin(source)
    backend.call("POST", f"/cancel/{source}")
    backend.finish(source)
    body = {"outcomes": ["unparsed"], "request_id": f"again-{new_project()}"}
    made = backend.call("POST", f"/rerun/{source}", json=body)
    assert (made["source_job"], made["message"]) == (source, f"Running items of job {source} again")
    assert backend.call("POST", f"/rerun/{source}", json=body)["job_id"] == made["job_id"]
    for other in ({"outcomes": ["refused"]}, {"priority": "low"}, {"num_predict": 9000}):
        assert made["job_id"] in backend.call("POST", f"/rerun/{source}", 409, json=body | other)["detail"]
    backend.begin(made["job_id"])
    again, before = (backend.call("GET", f"/results/{job_id}") for job_id in (made["job_id"], source))
    for name in ("model_name", "provider", "project_id", "labels", "item_set", "items"):
        assert again[name] == before[name], name
    assert (again["labels"], again["attempt"], again["status"]) == (LABELS, 1, "running")
    assert (again["reuse"]["job_id"], again["reuse"]["rerun"]) == (source, ["unparsed"])
    assert again["receipt"]["source_job"] == source
    backend.call("POST", f"/cancel/{made['job_id']}")
    backend.finish(made["job_id"])


def test_unread_answers_are_asked_for_again_with_more_room(backend: Backend) -> None:
    project = new_project()
    source = run(backend, project, MODEL | {"params": {"num_predict": 100}}, limit=100, tasks=["sentiment"])
    backend.finish(source)
    refused = backend.call("POST", f"/rerun/{source}", 400, json={"outcomes": ["unparsed"], "num_predict": 99})
    assert "must be 100 or more" in refused["detail"]
    made = backend.call("POST", f"/rerun/{source}", json={"outcomes": ["unparsed"], "num_predict": 200})
    backend.finish(made["job_id"])
    again = backend.call("GET", f"/results/{made['job_id']}")
    assert (again["status"], again["reuse"]["job_id"], again["items"]) == ("completed", source, 100)
    listed = backend.call("GET", f"/results?project_id={project}")["results"]
    assert [one["job_id"] for one in listed] == [made["job_id"], source]
    scored = backend.call("POST", f"/rescore/{made['job_id']}")
    backend.finish(scored["job_id"])
    assert backend.call("GET", f"/results/{scored['job_id']}")["reuse"]["rerun"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"outcomes": []}, 422),
        ({"outcomes": "refused"}, 422),
        ({"outcomes": ["answered"]}, 422),
        ({"outcomes": ["refused"], "num_predict": 0}, 422),
        ({"outcomes": ["refused"], "num_predict": 5, "max_tokens": 5}, 422),
        ({"outcomes": ["refused"], "temperature": 1}, 422),
        ({"outcomes": ["refused"], "budget_usd": 0}, 422),
        ({"outcomes": ["refused"], "priority": "urgent"}, 422),
        ({"outcomes": ["refused"], "request_id": "a b"}, 400),
        ({"outcomes": ["refused"]}, 400),
        ({"outcomes": ["refused", "unparsed", "refused"]}, 400),
    ],
)
def test_a_wrong_rerun_is_refused(
    backend: Backend, things: Things, twin: Twin, body: dict[str, Any], status: int
) -> None:
    refused = backend.call("POST", f"/rerun/{things.done}", status, json=body)
    if twin:
        fake, others = twin
        faked = fake.call("POST", f"/rerun/{others.done}", status, json=body)
        assert others.taken_from(faked["detail"]) == things.taken_from(refused["detail"])


def test_answers_that_do_not_count_or_have_no_rows_are_not_taken(backend: Backend, twin: Twin) -> None:
    told = [refusals(one) for one in (backend, *((twin[0],) if twin else ()))]
    assert "was marked as invalid: wrong rows" in told[0][0]
    assert told[0] == told[-1]


def refusals(backend: Backend) -> list[str]:
    """What is said of a run that was marked, and of one whose dataset is gone."""
    dataset = upload(backend)
    body = {"model_id": "echo@baselines", "dataset_id": dataset, "project_id": new_project(), "labels": LABELS}
    job_id = backend.call("POST", "/admin/benchmarks/run", json=body)["job_id"]
    backend.finish(job_id)
    assert backend.call("GET", f"/results/{job_id}")["labels"] == LABELS
    again = {"outcomes": ["refused"]}
    backend.call("POST", f"/results/{job_id}/mark", json={"mark": "invalidated", "reason": "wrong rows"})
    found = [backend.call("POST", f"/rerun/{job_id}", 409, json=again), backend.call("POST", f"/rescore/{job_id}", 409)]
    backend.call("POST", f"/results/{job_id}/mark", json={"mark": "valid"})
    found.append(backend.call("POST", f"/rerun/{job_id}", 400, json=again))
    backend.call("DELETE", f"/admin/datasets/{dataset}")
    found.append(backend.call("POST", f"/rescore/{job_id}", 404))
    return [one["detail"].replace(job_id, "JOB").replace(dataset, "DATASET") for one in found]


@pytest.mark.parametrize("path", ["/results", "/history", "/queue", "/export", "/leaderboard"])
def test_a_list_takes_no_label(backend: Backend, twin: Twin, path: str) -> None:
    refused = backend.call("GET", f"{path}?labels=search", 400)
    assert "labels" in refused["detail"]
    if twin:
        assert twin[0].call("GET", f"{path}?labels=search", 400)["detail"] == refused["detail"]
