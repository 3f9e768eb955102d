"""What people say of answers: kept, shown, found again and exported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.backends import Backend
from tests.contract.test_exports import export
from tests.contract.things import Things, Twin, new_project, upload


def test_annotations_are_shown_found_and_exported(backend: Backend) -> None:
    body = {"model_id": "echo@baselines", "dataset_id": upload(backend), "project_id": new_project()}
    made = backend.call("POST", "/admin/benchmarks/run", json=body)
    job_id = made["job_id"]
    backend.finish(job_id)
    owner = backend.call("GET", f"/results/{job_id}")["owner"]

    def say(item: int, verdict: str, **more: str) -> Any:
        address = f"/results/{job_id}/items/rows/{item}"
        told = backend.call("PUT", f"{address}/annotation", json={"verdict": verdict, **more})
        assert backend.call("GET", address) == told
        return told["annotation"]

    def found(verdict: str) -> list[int]:
        answer = backend.call("GET", f"/results/{job_id}/items?verdict={verdict}")
        assert answer["total"] == answer["counts"]["all"] == len(answer["items"])
        rows = backend.call("GET", f"/admin/benchmarks/{made['benchmark_id']}/results?verdict={verdict}")["results"]
        assert [f"c-{one['item']}" for one in answer["items"]] == [row["custom_id"] for row in rows]
        return [one["item"] for one in answer["items"]]

    golden = say(0, "golden", note="as it should be")
    assert golden == {
        "verdict": "golden",
        "corrected_answer": None,
        "note": "as it should be",
        "author": owner,
        "annotated_at": golden["annotated_at"],
    }
    assert say(1, "fix", corrected_answer="A")["corrected_answer"] == "A"
    say(2, "wrong")
    assert [found(verdict) for verdict in ("golden", "fix", "wrong", "none")] == [[0], [1], [2], [3, 4, 5]]
    examples = export(backend, f"/results/{job_id}/export?kind=golden", "jsonl")
    assert [{message["role"] for message in one["messages"]} for one in examples] == [{"user", "assistant"}] * 2
    response = backend.call("GET", f"/results/{job_id}/items/rows/0")["response"]
    assert [one["messages"][-1]["content"] for one in examples] == [response, "A"]
    table = export(backend, f"/results/{job_id}/export?kind=batch&verdict=fix", "csv")
    assert [(row["custom_id"], row["verdict"], row["corrected_answer"]) for row in table] == [("c-1", "fix", "A")]

    assert say(0, "golden", note="as it should be") == golden, "the same again changes nothing"
    assert say(0, "wrong")["note"] is None
    assert say(1, "none") is None
    assert [found(verdict) for verdict in ("golden", "fix", "wrong", "none")] == [[], [], [0, 2], [1, 3, 4, 5]]


def test_preferences_are_kept_changed_taken_back_and_exported(backend: Backend, things: Things) -> None:
    ids = [things.done, things.other]
    (row, *_) = backend.call("GET", f"/side-by-side?job_ids={','.join(ids)}&filter=agree")["rows"]
    place = {"job_ids": ids, "task": row["task"], "item": row["item"]}
    author = backend.call("GET", f"/results/{ids[0]}")["owner"]

    def say(status: int = 200, **said: Any) -> Any:
        return backend.call("PUT", "/side-by-side/preference", status, json=place | said)

    def held() -> Any:
        query = f"job_ids={ids[1]},{ids[0]}&judge={author}&filter=judged"
        return backend.call("GET", f"/side-by-side?{query}")

    told = say(choice="better", preferred_job_id=ids[1], blind=True)
    assert [one["preference"] for one in held()["rows"]] == [told]
    assert say(choice="tie")["preferred_job_id"] is None
    (kept,) = export(backend, f"/results/{ids[0]}/export?kind=preferences", "json")
    assert (kept["choice"], kept["item"], sorted(kept["jobs"])) == ("tie", row["item"], sorted(ids))
    assert held()["preferences"]["ties"] == 1
    assert say(400, choice="better")["detail"].startswith("preferred_job_id is required")
    say(404, choice="tie", item=999_999)
    assert say(choice="none")["choice"] == "none"
    assert held()["rows"] == []


@pytest.mark.parametrize(
    ("item", "body", "status"),
    [
        ("sentiment/{first}", {}, 422),
        ("sentiment/{first}", {"verdict": "splendid"}, 422),
        ("sentiment/{first}", {"verdict": "fix"}, 422),
        ("sentiment/{first}", {"verdict": "fix", "corrected_answer": ""}, 422),
        ("sentiment/{first}", {"verdict": "fix", "corrected_answer": " "}, 422),
        ("sentiment/{first}", {"verdict": "fix", "corrected_answer": "é" * 40_000}, 400),
        ("sentiment/{first}", {"verdict": "golden", "corrected_answer": "x"}, 422),
        ("sentiment/{first}", {"verdict": "wrong", "note": "x" * 2001}, 422),
        ("sentiment/{first}", {"verdict": "wrong", "repeat": 0}, 422),
        ("sentiment/x", {"verdict": "wrong"}, 400),
        ("sentiment/99999", {"verdict": "wrong"}, 404),
        ("nothing/0", {"verdict": "wrong"}, 404),
    ],
)
def test_a_wrong_annotation_is_refused(
    backend: Backend, things: Things, twin: Twin, item: str, body: dict[str, Any], status: int
) -> None:
    def refused(by: Backend, its: Things) -> str:
        (first,) = by.call("GET", f"/results/{its.done}/items?task=sentiment&limit=1")["items"]
        place = item.replace("{first}", str(first["item"]))
        told = by.call("PUT", f"/results/{its.done}/items/{place}/annotation", status, json=body)["detail"]
        assert by.call("GET", f"/results/{its.done}/items/sentiment/{first['item']}") == first
        return its.taken_from(str(told))

    told = refused(backend, things)
    if twin:
        assert refused(*twin) == told


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("kind=golden&verdict=wrong", 400),
        ("kind=golden&format=csv", 422),
        ("kind=batch&format=json", 422),
        ("kind=batch&format=parquet", 422),
        ("kind=jobs", 422),
        ("kind=items&format=xml", 422),
        ("kind=items&filter=different", 422),
        ("kind=metrics&filter=failures", 422),
        ("kind=metrics&verdict=none", 422),
        ("label=x", 400),
    ],
)
def test_a_wrong_export_is_refused(backend: Backend, things: Things, twin: Twin, query: str, status: int) -> None:
    path = f"/results/{{done}}/export?{query}"
    refused = backend.call("GET", things.put_into(path), status)
    if twin:
        fake, others = twin
        assert fake.call("GET", others.put_into(path), status)["detail"] == refused["detail"]
