"""`touchstone dataset`, and what the other verbs do with rows of the users' own."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset, dataset_job, job
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    item_result_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    scoring_pb2,
)
from touchstone_client import Scoring
from touchstone_client.command import main
from touchstone_client.command.output import FORMATS
from touchstone_client.specs import LAST_ASSISTANT

Captured = pytest.CaptureFixture[str]
Verdict = results_service_pb2.Annotation


@pytest.fixture
def kept(fakes: Fakes) -> Fakes:
    """One dataset, and one job over it with one answer to row "candidate-7"."""
    row = dataset_pb2.DatasetRow(
        custom_id="a", reference='"Paris"', metadata='{"name": "Ada"}', stop=["\n"],
        messages=[dataset_pb2.ChatMessage(role="user", content="Capital of France?")],
    )  # fmt: skip
    row.sampling.max_tokens = 9
    result = item_result_pb2.ItemResult(
        item=6, custom_id="candidate-7", outcome=item_result_pb2.OUTCOME_ANSWERED, response="Lyon?"
    )
    stored = results_service_pb2.StoredItem(job_id=JOB, task="rows", result=result, score=0.25)
    stored.annotation.verdict = Verdict.VERDICT_FIX
    stored.annotation.corrected_answer = "Paris"
    fakes.answers |= {
        "UploadDataset": dataset_service_pb2.UploadDatasetResponse(dataset=dataset()),
        "CreateHubDataset": dataset_service_pb2.CreateHubDatasetResponse(
            dataset=dataset(name="openai/gsm8k/main/test")
        ),
        "GetDataset": dataset_service_pb2.GetDatasetResponse(
            dataset=dataset(template="{{q}}"), live_jobs=2, finished_jobs=3
        ),
        "ListDatasets": dataset_service_pb2.ListDatasetsResponse(datasets=[dataset()], total_size=1),
        "ListDatasetRows": dataset_service_pb2.ListDatasetRowsResponse(rows=[row]),
        "DeleteDataset": dataset_service_pb2.DeleteDatasetResponse(),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(job=dataset_job(request.job_id)),
        "CreateJob": scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER, state="PENDING")),
        "ListItems": lambda request: results_service_pb2.ListItemsResponse(
            items=[stored] if request.conditions.custom_id in ("", "candidate-7", "7") else []
        ),
        "GetItem": results_service_pb2.GetItemResponse(item=stored),
        "AnnotateItem": results_service_pb2.AnnotateItemResponse(item=stored),
        "Export": [results_service_pb2.ExportResponse(data=b"{}\n")],
    }
    return fakes


def test_an_upload_prints_the_id_alone_and_tells_what_was_kept(kept: Fakes, tmp_path: Path, capsys: Captured) -> None:
    file, template = tmp_path / "capitals.jsonl", tmp_path / "prompt.txt"
    file.write_text('{"q": "Capital of France?"}\n')
    template.write_text("{{q}} Say it in a word.")
    options = ["--template", f"@{template}", "--scorer", "json", "--fields", "a,b.c", "--reference-field", "y"]
    assert main(["dataset", "upload", str(file), *options, "--as", "columns", "--project-id", "7"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{DATASET}\n"
    assert captured.err == (
        "capitals.jsonl: 5,000 rows, 12.3 MB, about 120,000 tokens of input; 4,000 with a reference, scored by "
        "exact_match.\n"
    )
    (messages,) = kept.requests("UploadDataset")
    asked = messages[0].options
    assert (asked.name, asked.template, asked.project_id) == ("capitals.jsonl", "{{q}} Say it in a word.", 7)
    assert asked.format == dataset_pb2.Dataset.FORMAT_COLUMNS
    assert asked.scoring == Scoring(scorer="json", fields=["a", "b.c"], reference_field="y")


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("reference", "In 1 row the assistant's last message is the reference, not in the prompt."),
        ("prefill", "In 1 row the assistant's last message begins the answer, in the prompt."),
    ],
)
def test_what_becomes_of_the_assistants_last_message_is_said_and_told(
    kept: Fakes, tmp_path: Path, capsys: Captured, choice: str, told: str
) -> None:
    made = dataset(last_assistant=LAST_ASSISTANT[choice], rows_with_last_assistant=1)
    kept.answers["UploadDataset"] = dataset_service_pb2.UploadDatasetResponse(dataset=made)
    kept.answers["GetDataset"] = dataset_service_pb2.GetDatasetResponse(dataset=made)
    file = tmp_path / "a.jsonl"
    file.write_text("{}\n")
    assert main(["dataset", "upload", str(file), "--last-assistant", choice]) == 0
    assert kept.requests("UploadDataset")[0][0].options.last_assistant == LAST_ASSISTANT[choice]
    assert told in capsys.readouterr().err
    assert main(["dataset", "show", DATASET]) == 0
    assert told[len("In 1 row ") : -1] in " ".join(capsys.readouterr().out.split())


def test_a_file_that_needs_the_choice_names_its_argument(kept: Fakes, tmp_path: Path, capsys: Captured) -> None:
    said = "Say what becomes of such messages: last_assistant reference takes them out of the prompt."
    kept.answers["UploadDataset"] = errors.InvalidRequestError(said, "last_assistant")
    file = tmp_path / "a.jsonl"
    file.write_text("{}\n")
    assert main(["dataset", "upload", str(file)]) == 2
    assert "messages: --last-assistant reference takes" in capsys.readouterr().err


def test_without_a_word_on_scoring_none_is_sent(kept: Fakes, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("q\n1\n")
    assert main(["dataset", "upload", str(file), "--name", "mine", "--template", "{{q}}"]) == 0
    (messages,) = kept.requests("UploadDataset")
    assert (messages[0].options.name, messages[0].options.HasField("scoring")) == ("mine", False)


def test_standard_input_is_a_file_as_well(kept: Fakes) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "touchstone_client", "dataset", "upload", "-", "--name", "piped.jsonl"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input=b'{"prompt": "x"}\n',
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (made.returncode, made.stdout.decode().strip()) == (0, DATASET), made.stderr
    (messages,) = kept.requests("UploadDataset")
    assert b"".join(message.data for message in messages) == b'{"prompt": "x"}\n'


def test_bad_lines_are_a_table_on_stderr_and_code_two(kept: Fakes, tmp_path: Path, capsys: Captured) -> None:
    (file := tmp_path / "bad.jsonl").write_text("{\n")
    sentence = "102 lines of bad.jsonl cannot be used; nothing was stored."
    lines = [(17, "It is no JSON."), (4021, "body.messages is missing.")]
    kept.answers["UploadDataset"] = errors.BadLinesError(sentence, lines, 102)
    assert main(["dataset", "upload", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"touchstone: {sentence}",
        "line  reason",
        "  17  It is no JSON.",
        "4021  body.messages is missing.",
        "",
        "100 further lines are wrong, too.",
    ]
    assert main(["dataset", "upload", str(file), "--format", "json"]) == 2
    made = json.loads(capsys.readouterr().out)
    assert (made["error"], made["lines_total"]) == (sentence, 102)
    assert made["lines"][1] == {"line": 4021, "reason": "body.messages is missing."}


def test_what_is_no_file_is_refused_before_anything_is_sent(kept: Fakes, tmp_path: Path, capsys: Captured) -> None:
    assert main(["dataset", "upload", str(tmp_path / "none.jsonl")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert kept.heard == []


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            errors.InvalidRequestError("options.template is needed for CSV.", "options.template"),
            "--template is needed for CSV.",
        ),
        (errors.InvalidRequestError("tolerance is -1.", "options.scoring.tolerance"), "--tolerance is -1."),
        (errors.LimitReachedError("Two uploads are under way.", 5), "Two uploads are under way."),
    ],
)
def test_a_refused_upload_names_arguments(
    kept: Fakes, tmp_path: Path, capsys: Captured, told: errors.TouchstoneError, said: str
) -> None:
    (file := tmp_path / "rows.csv").write_text("q\n")
    kept.answers["UploadDataset"] = told
    assert main(["dataset", "upload", str(file)]) == 2
    assert capsys.readouterr().err == f"touchstone: {said}\n"


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


def test_a_rescore_keeps_what_is_not_said(kept: Fakes) -> None:
    assert main(["rescore", JOB, "--scorer", "contains", "--no-watch"]) == 0
    assert main(["rescore", JOB, "--no-watch"]) == 0
    assert main(["rescore", JOB, "--reading", "lenient", "--no-watch"]) == 0
    specs = [request.spec for request in kept.requests("CreateJob")]
    usual = Scoring(scorer="exact_match", reference_field="label")
    assert [spec.dataset.scoring for spec in specs] == [
        Scoring(scorer="contains", reference_field="label"),
        usual,
        usual,
    ]
    assert [spec.reading for spec in specs] == [0, 0, scoring_pb2.READING_LENIENT]


def test_a_suites_run_is_not_scored_by_another_scorer(kept: Fakes, capsys: Captured) -> None:
    kept.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    assert main(["rescore", JOB, "--scorer", "contains"]) == 2
    assert "whose tasks have scorers of their own" in capsys.readouterr().err
    assert kept.requests("CreateJob") == []


def test_a_rerun_takes_a_higher_budget(kept: Fakes) -> None:
    assert main(["rerun", JOB, "--outcome", "error", "--budget-usd", "10", "--no-watch"]) == 0
    assert kept.requests("CreateJob")[0].spec.budget_usd == 10


def test_a_row_is_annotated_by_its_id_or_its_number(kept: Fakes, capsys: Captured) -> None:
    assert main(["annotate", JOB, "candidate-7", "fix", "--answer", "Paris", "--note", "Not Lyon."]) == 0
    assert main(["annotate", JOB, "6", "golden"]) == 0
    assert main(["annotate", JOB, "6", "none"]) == 0
    by_id, by_number, taken_back = kept.requests("AnnotateItem")
    assert (by_id.task, by_id.item, by_id.verdict) == ("rows", 6, Verdict.VERDICT_FIX)
    assert (by_id.corrected_answer, by_id.note) == ("Paris", "Not Lyon.")
    assert (by_number.task, by_number.item, by_number.verdict) == ("rows", 6, Verdict.VERDICT_GOLDEN)
    assert taken_back.verdict == Verdict.VERDICT_UNSPECIFIED
    assert capsys.readouterr().out.splitlines() == [
        f"rows 6 (candidate-7) of job {JOB} is annotated fix.",
        f"rows 6 (candidate-7) of job {JOB} is annotated golden.",
        f"rows 6 (candidate-7) of job {JOB} is not annotated.",
    ]


def test_an_id_that_may_be_a_number_must_be_told_apart(kept: Fakes, capsys: Captured) -> None:
    """Row "7" is item 6 here, and item 7 is another row."""
    assert main(["annotate", JOB, "7", "wrong"]) == 2
    assert "7 is the id of item 6 and may be the number of another one. Say which" in capsys.readouterr().err
    assert main(["annotate", JOB, "7", "wrong", "--by", "id"]) == 0
    assert main(["annotate", JOB, "7", "wrong", "--by", "number"]) == 0
    assert [request.item for request in kept.requests("AnnotateItem")] == [6, 7]


def test_a_row_that_is_not_there_is_not_annotated(kept: Fakes, capsys: Captured) -> None:
    assert main(["annotate", JOB, "candidate-9", "wrong"]) == 2
    assert f"No item of job {JOB} has the id candidate-9." in capsys.readouterr().err


def test_a_number_in_a_job_of_several_tasks_needs_its_task(kept: Fakes, capsys: Captured) -> None:
    suite = job()
    suite.plan.add(task="rte")
    suite.plan.add(task="sst2")
    kept.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=suite)
    for arguments in (["annotate", JOB, "3", "golden"], ["items", JOB, "--item", "3"]):
        assert main(arguments) == 2
        assert f"--task is needed: job {JOB} has rte, sst2." in capsys.readouterr().err
    assert main(["annotate", JOB, "3", "golden", "--task", "rte"]) == 0
    assert kept.requests("AnnotateItem")[0].task == "rte"


def test_items_take_every_condition(kept: Fakes) -> None:
    more = [
        "--metadata",
        "name=Ada",
        "--length",
        "10..200",
        "--score",
        "..0.5",
        "--verdict",
        "fix",
        "--verdict",
        "none",
    ]
    assert main(["items", JOB, *more, "--custom-id", "candidate-7", "--query", "Lyon"]) == 0
    (request,) = kept.requests("ListItems")
    asked = request.conditions
    assert (request.query, asked.custom_id, asked.metadata_field, asked.metadata_value) == (
        "Lyon",
        "candidate-7",
        "name",
        "Ada",
    )
    assert (asked.length_low, asked.length_high) == (10, 200)
    assert (asked.HasField("score_low"), asked.score_high) == (False, 0.5)
    assert list(asked.verdicts) == [Verdict.VERDICT_FIX, Verdict.VERDICT_UNSPECIFIED]


def test_metadata_of_any_field_and_one_length(kept: Fakes) -> None:
    assert main(["items", JOB, "--metadata", "Ada", "--length", "7"]) == 0
    asked = kept.requests("ListItems")[0].conditions
    assert (asked.metadata_field, asked.metadata_value, asked.length_low, asked.length_high) == ("", "Ada", 7, 7)


def test_items_show_ids_scores_and_verdicts(kept: Fakes, capsys: Captured) -> None:
    main(["items", JOB])
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split() == ["task", "item", "row", "outcome", "score", "verdict", "response", "ms", "tokens"]
    assert line.split() == ["rows", "6", "candidate-7", "answered", "0.2500", "fix", "Lyon?", "0", "0"]
    main(["items", JOB, "--format", "csv"])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["custom_id"], row["score"], row["verdict"], row["correct"]) == ("candidate-7", "0.25", "fix", "")


def test_a_whole_item_has_its_annotation(kept: Fakes, capsys: Captured) -> None:
    main(["items", JOB, "--item", "6"])
    assert ["corrected_answer", "Paris"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert kept.requests("GetItem")[0].task == "rows"


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


def test_an_alias_that_moves_says_whom_it_left(fakes: Fakes, capsys: Captured) -> None:
    told = results_service_pb2.Configuration(configuration="c1", alias="prod", alias_taken_from=["c0"])
    fakes.answers["NameConfiguration"] = results_service_pb2.NameConfigurationResponse(configuration=told)
    assert main(["configurations", "name", "c1", "--alias", "prod"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "c1: name none, alias prod",
        "The alias prod was taken from c0.",
    ]


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        (["queue"], "GetQueue"),
        (["schedules", "list"], "ListSchedules"),
        (["webhooks", "list"], "ListWebhooks"),
        (["configurations", "list"], "ListConfigurations"),
        (["dataset", "list"], "ListDatasets"),
    ],
)
def test_lists_take_a_project(kept: Fakes, arguments: list[str], method: str) -> None:
    kept.answers |= {
        "GetQueue": scheduler_service_pb2.GetQueueResponse(),
        "ListSchedules": scheduler_service_pb2.ListSchedulesResponse(),
        "ListWebhooks": scheduler_service_pb2.ListWebhooksResponse(),
        "ListConfigurations": results_service_pb2.ListConfigurationsResponse(),
    }
    assert main([*arguments, "--project-id", "7"]) == 0
    assert kept.requests(method)[0].project_id == 7


def test_a_request_id_goes_with_an_upload_and_a_split(kept: Fakes, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"prompt": "a"}\n')
    assert main(["dataset", "upload", str(file), "--request-id", "once"]) == 0
    assert main(["dataset", "upload", str(file)]) == 0
    hub = ["dataset", "hub", "openai/gsm8k", "--split", "test", "--template", "{{q}}"]
    assert main([*hub, "--request-id", "once"]) == 0
    first, second = kept.requests("UploadDataset")
    assert ([request.request_id for request in first], second[0].request_id) == (["once", ""], "")
    assert kept.requests("CreateHubDataset")[0].request_id == "once"
