"""Datasets from the Hub: both backends read the bundled data, which needs no network."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.backends import Backend
from tests.contract.things import Things, Twin, new_project

SPLIT = {"dataset": "demo", "config": "sentiment", "split": "validation", "template": "Is it good? {{sentence}}"}
SCORED: dict[str, Any] = {"scoring": {"scorer": "contains", "reference_field": "label"}}


def from_hub(backend: Backend, status: int = 200, **changes: Any) -> Any:
    body = {name: value for name, value in (SPLIT | changes).items() if value is not None}
    return backend.call("POST", "/admin/datasets/hub", status, json=body)


def test_a_split_becomes_a_dataset(backend: Backend, twin: Twin) -> None:
    project = new_project()
    options: dict[str, Any] = {"limit": 7, "custom_id_field": "idx", "project_id": project, **SCORED}
    made = from_hub(backend, **options)
    assert (made["name"], made["format"], made["count"]) == ("demo/sentiment/validation", "hub", 7)
    assert made["source"] == {name: SPLIT[name] for name in ("dataset", "config", "split")} | {
        "revision": made["source"]["revision"]
    }
    assert len(made["source"]["revision"]) == 64
    shown = backend.call("GET", f"/admin/datasets/{made['dataset_id']}")
    rows = backend.call("GET", f"/admin/datasets/{made['dataset_id']}/rows")["rows"]
    assert [row["custom_id"] for row in rows] == [str(number) for number in range(7)]
    assert {row["reference"] for row in rows} == {0, 1}
    named = backend.call("GET", f"/admin/datasets?project_id={project}")["datasets"]
    assert [one["id"] for one in named] == [made["dataset_id"]]
    if twin:
        fake, _ = twin
        faked = from_hub(fake, **options)
        own = {name for name, value in made.items() if made["dataset_id"] in str(value)} | {"uploaded_at"}
        assert {name: faked[name] for name in faked.keys() - own} == {name: made[name] for name in made.keys() - own}
        assert fake.call("GET", f"/admin/datasets/{faked['dataset_id']}/rows")["rows"] == rows
        assert {*fake.call("GET", f"/admin/datasets/{faked['dataset_id']}")} == {*shown}


def test_a_revision_is_confirmed_and_a_run_reads_the_rows(backend: Backend) -> None:
    revision = from_hub(backend, limit=1)["source"]["revision"]
    made = from_hub(backend, limit=3, revision=revision, name="three", **SCORED)
    assert (made["name"], made["source"]["revision"]) == ("three", revision)
    body = {"model_id": "echo@baselines", "dataset_id": made["dataset_id"], "project_id": new_project()}
    started = backend.call("POST", "/admin/benchmarks/run", json=body)
    backend.finish(started["job_id"])
    done = backend.call("GET", f"/results/{started['job_id']}")
    assert (done["status"], done["items"], done["dataset"]["name"]) == ("completed", 3, "three")


def test_a_repeated_request_makes_one_dataset(backend: Backend) -> None:
    request_id = f"hub-{new_project()}"
    first = from_hub(backend, limit=2, request_id=request_id)["dataset_id"]
    assert from_hub(backend, limit=2, request_id=request_id)["dataset_id"] == first
    for change in ({"limit": 3}, {"limit": 2, "template": "{{label}}"}, {"limit": 2, "split": "train"}):
        assert first in from_hub(backend, 409, request_id=request_id, **change)["detail"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"dataset": None}, 422),
        ({"split": None}, 422),
        ({"template": None}, 422),
        ({"limit": 0}, 422),
        ({"name": "x" * 201}, 422),
        ({"project_id": -1}, 422),
        ({"scoring": {"scorer": "no scorer"}}, 422),
        ({"last_assistant": "nothing"}, 422),
        ({"expires_after_s": 60}, 422),
        ({"dataset": "a b"}, 400),
        ({"dataset": "a/b/c"}, 400),
        ({"dataset": "../etc"}, 400),
        ({"config": "/"}, 400),
        ({"split": "a/b"}, 400),
        ({"revision": "a b"}, 400),
        ({"name": "a\u2028b"}, 400),
        ({"request_id": "a b"}, 400),
        ({"template": "{{nothing}}"}, 400),
        ({"template": "no column"}, 400),
        ({"custom_id_field": "nothing"}, 400),
        ({"scoring": {"scorer": "contains", "reference_field": "nothing"}}, 400),
        ({"config": "nothing"}, 404),
        ({"split": "test"}, 404),
        ({"revision": "main"}, 404),
        ({"dataset": "services"}, 404),
    ],
)
def test_what_is_no_split_is_refused(backend: Backend, twin: Twin, change: dict[str, Any], status: int) -> None:
    refused = from_hub(backend, status, **change)
    if twin:
        assert from_hub(twin[0], status, **change)["detail"] == refused["detail"]


def test_a_refused_split_leaves_no_dataset(backend: Backend, things: Things) -> None:
    project = new_project()
    from_hub(backend, 400, template="{{nothing}}", project_id=project)
    from_hub(backend, 404, split="test", project_id=project)
    assert backend.call("GET", f"/admin/datasets?project_id={project}")["total"] == 0
