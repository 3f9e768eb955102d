"""Exports from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.fakes import JOB, Fakes
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone_client.command import main

Verdict = results_service_pb2.Annotation
Export = results_service_pb2.ExportRequest


@pytest.mark.parametrize(
    ("arguments", "kind", "format"),
    [
        (["golden", "--job", JOB], Export.KIND_GOLDEN, Export.FORMAT_JSONL),
        ([JOB, "--kind", "golden"], Export.KIND_GOLDEN, Export.FORMAT_JSONL),
        ([JOB, "--kind", "batch"], Export.KIND_BATCH_OUTPUT, Export.FORMAT_JSONL),
        (["batch", "--job", JOB, "--format", "csv"], Export.KIND_BATCH_OUTPUT, Export.FORMAT_CSV),
        ([JOB], Export.KIND_ITEMS, Export.FORMAT_CSV),
        ([JOB, "--kind", "metrics", "--format", "json"], Export.KIND_METRICS, Export.FORMAT_JSON),
    ],
)
def test_exports_of_a_job_are_said_in_either_order(
    kept: Fakes, capfdbinary: Any, arguments: list[str], kind: int, format: int
) -> None:
    assert main(["export", *arguments]) == 0
    assert capfdbinary.readouterr().out == b"{}\n"
    (request,) = kept.requests("Export")
    assert (request.kind, request.format, request.items.job_id) == (kind, format, JOB)


def test_an_export_takes_the_conditions_of_items(kept: Fakes, tmp_path: Path) -> None:
    file = tmp_path / "golden.jsonl"
    assert main(["export", JOB, "--kind", "golden", "--metadata", "name=Ada", "-o", str(file)]) == 0
    assert kept.requests("Export")[0].items.conditions.metadata_value == "Ada"
    assert file.read_bytes() == b"{}\n"


def test_an_export_goes_to_a_file_or_to_stdout(told: Fakes, tmp_path: Path, capfdbinary: Any) -> None:
    told.answers["Export"] = [results_service_pb2.ExportResponse(data=b"task,item\n")]
    file = tmp_path / "items.csv"
    assert main(["export", "items", "--job", JOB, "--filter", "failures", "--output", str(file)]) == 0
    assert file.read_bytes() == b"task,item\n"
    assert main(["export", "metrics", "--model", "m", "--status", "completed", "--format", "jsonl"]) == 0
    assert capfdbinary.readouterr().out == b"task,item\n"
    items, metrics = told.requests("Export")
    assert (items.items.job_id, items.items.filter) == (JOB, results_service_pb2.ListItemsRequest.FILTER_FAILURES)
    assert (metrics.jobs.model, list(metrics.jobs.states)) == ("m", [job_pb2.Job.STATE_COMPLETED])
    assert metrics.format == results_service_pb2.ExportRequest.FORMAT_JSONL
