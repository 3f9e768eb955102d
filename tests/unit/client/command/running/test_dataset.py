"""Datasets on the command line: lists, rows, deleting."""

from __future__ import annotations

import json

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, Fakes
from touchstone.v1 import dataset_service_pb2, results_service_pb2
from touchstone_client.command import main
from touchstone_client.command.printing.output import FORMATS

Captured = pytest.CaptureFixture[str]
Verdict = results_service_pb2.Annotation


def test_a_hub_dataset_is_kept_like_an_upload(kept: Fakes, capsys: Captured) -> None:
    what = ["openai/gsm8k", "--config", "main", "--split", "test", "--template", "{{question}}", "--limit", "50"]
    assert main(["dataset", "hub", *what]) == 0
    (request,) = kept.requests("CreateHubDataset")
    assert (request.source.dataset, request.limit, request.options.template) == ("openai/gsm8k", 50, "{{question}}")
    assert capsys.readouterr().out == f"{DATASET}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["dataset", "list", "--query", "cap", "--owner", "alice"],
        ["dataset", "show", DATASET],
        ["dataset", "rows", DATASET],
        ["items", JOB],
        ["items", JOB, "--item", "6"],
    ],
)
def test_reading_verbs_print_every_format(kept: Fakes, capsys: Captured, arguments: list[str]) -> None:
    for format in FORMATS:
        assert main([*arguments, "--format", format]) == 0
        assert capsys.readouterr().out.strip()


def test_a_dataset_is_shown_with_what_it_holds(kept: Fakes, capsys: Captured) -> None:
    main(["dataset", "show", DATASET])
    facts = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines()[1:])
    assert (facts["rows"], facts["size"], facts["template"]) == ("5,000", "12.3 MB", "{{q}}")
    main(["dataset", "show", DATASET, "--format", "json"])
    made = json.loads(capsys.readouterr().out)
    assert (made["rows"], made["format"], made["scoring"]["scorer"]) == (5000, "lines", "exact_match")
    assert (made["live_jobs"], made["finished_jobs"], facts["jobs"].split()) == (2, 3, ["finished", "3"])


def test_rows_are_told_as_what_they_mean(kept: Fakes, capsys: Captured) -> None:
    main(["dataset", "rows", DATASET, "--format", "json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["custom_id"], row["reference"], row["metadata"]) == ("a", "Paris", {"name": "Ada"})
    assert row["messages"] == [{"role": "user", "content": "Capital of France?"}]
    assert (row["sampling"]["max_tokens"], row["stop"]) == (9, ["\n"])


def test_an_empty_list_says_what_to_do(kept: Fakes, capsys: Captured) -> None:
    kept.answers["ListDatasets"] = dataset_service_pb2.ListDatasetsResponse()
    assert main(["dataset", "list"]) == 0
    assert "touchstone dataset upload FILE" in capsys.readouterr().out


def test_a_dataset_in_use_stays(kept: Fakes, capsys: Captured) -> None:
    assert main(["dataset", "delete", DATASET]) == 0
    assert capsys.readouterr().out == f"{DATASET} is removed.\n"
    kept.answers["DeleteDataset"] = dataset_service_pb2.DeleteDatasetResponse(finished_jobs=3)
    assert main(["dataset", "delete", DATASET]) == 0
    told = "3 finished runs over it keep their results and answers, but can no longer be scored again."
    assert capsys.readouterr().out == f"{DATASET} is removed. {told}\n"
    kept.answers["DeleteDataset"] = errors.ConflictError(f"Job {JOB} uses it. Cancel the job or wait for it.")
    assert main(["dataset", "delete", DATASET]) == 2
    assert capsys.readouterr().err == f"touchstone: Job {JOB} uses it. Cancel the job or wait for it.\n"
