"""Exports: every kind in every format, read back, with the filters of lists."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.contract.backends import Backend
from tests.contract.things import Things, Twin

MEDIA = {
    "csv": "text/csv; charset=utf-8; header=present",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
TABLES = (
    "/export?kind=jobs&project_id={project}",
    "/export?kind=metrics&project_id={project}",
    "/results/{done}/export?kind=metrics",
    "/results/{live}/export?kind=metrics",
    "/results/{done}/export?kind=items",
    "/results/{run_job}/export?kind=items",
)


def read(word: str, data: bytes) -> list[dict[str, Any]]:
    """The file's rows, as the format has them."""
    if word == "csv":
        return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))
    if word == "parquet":
        return list(pq.read_table(io.BytesIO(data)).to_pylist())
    return [json.loads(line) for line in data.splitlines()] if word == "jsonl" else list(json.loads(data))


def export(backend: Backend, path: str, word: str) -> list[dict[str, Any]]:
    answer = backend.file(f"{path}&format={word}")
    assert answer.headers["content-type"] == MEDIA[word]
    assert answer.headers["content-disposition"].endswith(f'.{word}"')
    return read(word, answer.content)


def plain(value: Any) -> str:
    """A value as every format can say it: in text, an object as JSON, a number with twelve digits."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:.12g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    return json.dumps(value, sort_keys=True)


def kinds(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    """By column the kinds of its values."""
    return {
        name: {"number" if type(row[name]) in (int, float) else type(row[name]).__name__ for row in rows} - {"NoneType"}
        for name in rows[0]
    }


@pytest.mark.parametrize("path", TABLES)
def test_a_table_has_the_same_rows_in_every_format(backend: Backend, things: Things, twin: Twin, path: str) -> None:
    asked = things.put_into(path)
    whole = export(backend, asked, "jsonl")
    assert whole
    plainly = [{name: plain(value) for name, value in row.items()} for row in whole]
    for word in ("json", "csv", "parquet"):
        told = export(backend, asked, word)
        assert [{name: plain(value) for name, value in row.items()} for row in told] == plainly
    if twin:
        fake, others = twin
        faked = export(fake, others.put_into(path), "jsonl")
        assert [*faked[0]] == [*whole[0]]
        told_kinds, faked_kinds = kinds(whole), kinds(faked)
        both = [name for name in told_kinds if told_kinds[name] and faked_kinds[name]]
        assert {name: faked_kinds[name] for name in both} == {name: told_kinds[name] for name in both}


def test_batch_output_has_a_line_for_every_row(backend: Backend, things: Things, twin: Twin) -> None:
    path = "/results/{run_job}/export?kind=batch"
    lines = export(backend, things.put_into(path), "jsonl")
    table = export(backend, things.put_into(path), "csv")
    assert [line["custom_id"] for line in lines] == [row["custom_id"] for row in table]
    for line, row in zip(lines, table, strict=True):
        (choice,) = line["response"]["body"]["choices"]
        assert (choice["message"]["content"], line["error"]) == (row["response"], None)
    streamed = backend.call("GET", f"/admin/benchmarks/{things.run}/results")["results"]
    assert [row["custom_id"] for row in streamed] == [line["custom_id"] for line in lines]
    if twin:
        fake, others = twin
        assert [*export(fake, others.put_into(path), "csv")[0]] == [*table[0]]
        faked = export(fake, others.put_into(path), "jsonl")[0]
        assert members(faked) == members(lines[0])


def members(value: Any, place: str = "") -> set[str]:
    found = {place}
    for name, inner in value.items() if isinstance(value, dict) else ():
        found |= members(inner, f"{place}.{name}")
    return found


@pytest.mark.parametrize(
    "query",
    [
        "task=sentiment",
        "filter=correct",
        "filter=failures",
        "filter=final",
        "filter=unparsed",
        "filter=different&baseline={other}",
        "filter=regressed&baseline={other}",
        "filter=improved&baseline={other}",
        "query=SENTENCE",
        "score_low=1",
        "score_high=0",
        "length_low=1",
        "length_high=1",
        "verdict=none",
        "verdict=wrong",
        "custom_id=c-1",
    ],
)
def test_items_are_exported_as_they_are_listed(backend: Backend, things: Things, query: str) -> None:
    asked = things.put_into(query)
    listed = backend.call("GET", f"/results/{things.done}/items?limit=500&{asked}")["items"]
    told = export(backend, f"/results/{things.done}/export?kind=items&{asked}", "jsonl")
    assert [(one["task"], one["item"]) for one in told] == [(one["task"], one["item"]) for one in listed]


@pytest.mark.parametrize("query", ["", "&status=completed", "&status=failed", "&model_name=random", "&query=MAJ"])
def test_jobs_are_exported_as_they_are_listed(backend: Backend, things: Things, query: str) -> None:
    asked = f"project_id={things.project}{query}"
    listed = [one["job_id"] for one in backend.call("GET", f"/results?{asked}")["results"]]
    assert [one["job_id"] for one in export(backend, f"/export?kind=jobs&{asked}", "jsonl")] == listed
    measured = {one["job_id"] for one in export(backend, f"/export?kind=metrics&{asked}", "jsonl")}
    assert measured == {*listed} - {things.live}
