"""Uploading a dataset from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services import errors
from services.words.enums import LAST_ASSISTANT
from tests.unit.client.fakes import DATASET, Fakes, dataset
from touchstone.v1 import dataset_pb2, dataset_service_pb2, results_service_pb2
from touchstone_client import Scoring
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
Verdict = results_service_pb2.Annotation


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
        ("reference", "In 1 row the assistant's last message is the reference, not part of the prompt."),
        ("prefill", "In 1 row the assistant's last message starts the answer, as part of the prompt."),
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
        "100 more lines are wrong.",
    ]
    assert main(["dataset", "upload", str(file), "--format", "json"]) == 2
    made = json.loads(capsys.readouterr().out)
    assert (made["error"], made["lines_total"]) == (sentence, 102)
    assert made["lines"][1] == {"line": 4021, "reason": "body.messages is missing."}


def test_bad_lines_are_grouped_by_reason(kept: Fakes, tmp_path: Path, capsys: Captured) -> None:
    (file := tmp_path / "bad.jsonl").write_text("{\n")
    groups = [errors.LineReason('The id "…" is taken.', 4000, [17, 4021]), errors.LineReason("No JSON.", 1, [5])]
    lines = [(5, "No JSON."), (17, 'The id "a" is taken.')]
    kept.answers["UploadDataset"] = errors.BadLinesError("4,002 lines.", lines, 4002, groups)
    assert main(["dataset", "upload", str(file)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "touchstone: 4,002 lines.",
        "lines  reason                which",
        '4,000  The id "…" is taken.  17, 4,021, …',
        "    1  No JSON.              5",
        "",
        "1 further line has other reasons.",
    ]
    assert main(["dataset", "upload", str(file), "--format", "json"]) == 2
    made = json.loads(capsys.readouterr().out)
    assert made["reasons"][0] == {"reason": 'The id "…" is taken.', "count": 4000, "lines": [17, 4021]}
    assert (made["lines_total"], made["other_lines"]) == (4002, 1)
    assert main(["dataset", "upload", str(file), "--format", "csv"]) == 2
    assert capsys.readouterr().out.splitlines()[:2] == ["line,reason", "5,No JSON."]

    found = [dataset_pb2.BadLineReason(reason=one.reason, count=one.count, lines=one.lines) for one in groups]
    kept.answers["PreviewDataset"] = dataset_service_pb2.PreviewDatasetResponse(
        dataset=dataset(), bad_lines=[dataset_pb2.BadLine(line=5)], bad_lines_total=4002, reasons=found, other_lines=1
    )
    assert main(["dataset", "check", str(file)]) == 2
    said = capsys.readouterr().out
    assert '4,000  The id "…" is taken.  17, 4,021, …' in said
    assert "1 further row has other reasons." in said


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


def test_a_check_says_how_rows_are_read(kept: Fakes, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"PAR1")
    assert main(["dataset", "check", str(file), "--as", "alpaca", "--sheet", "B"]) == 0
    said = capsys.readouterr().out
    assert "Capital of France?" in said
    assert "Parquet, read as Alpaca: prompt from instruction." in said
    assert "5,000 of 5,000 rows fit, 4,000 with a reference; about 120,000 tokens of input." in said
    (messages,) = kept.requests("PreviewDataset")
    assert messages[0].options.format == dataset_pb2.Dataset.FORMAT_ALPACA
    assert messages[0].options.name == "a.parquet"
    assert messages[0].options.sheet == "B"
    assert b"".join(message.data for message in messages) == b"PAR1"


def test_a_check_of_rows_that_do_not_fit_names_them_and_other_readings(
    kept: Fakes, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "a.json"
    file.write_text("[]")
    reading = dataset_service_pb2.DatasetReading(format="FORMAT_DPO", reading="JSON array, read as DPO")
    kept.answers["PreviewDataset"] = dataset_service_pb2.PreviewDatasetResponse(
        dataset=dataset(reading="r"),
        rows_found=5200,
        bad_lines=[dataset_pb2.BadLine(line=7, reason="It is wrong.")],
        bad_lines_total=200,
        readings=[reading],
    )
    assert main(["dataset", "check", str(file)]) == 2
    said = capsys.readouterr().out
    assert "It is wrong." in said
    assert "5,000 of 5,200 rows fit" in said
    assert "199 more rows do not fit." in said
    assert "--as dpo: JSON array, read as DPO." in said

    kept.answers["PreviewDataset"] = dataset_service_pb2.PreviewDatasetResponse(
        why="The rows can be read as dpo or inspect.", field="format", columns=["a", "b"], readings=[reading]
    )
    assert main(["dataset", "check", str(file)]) == 2
    said = capsys.readouterr().out
    assert "The rows can be read as dpo or inspect." in said
    assert "Columns: a, b." in said
    assert "--as dpo" in said

    kept.answers["PreviewDataset"] = dataset_service_pb2.PreviewDatasetResponse(
        why='The sheet "A" has no rows.', field="sheet", sheets=["A", "B"]
    )
    assert main(["dataset", "check", str(file)]) == 2
    said = capsys.readouterr().out
    assert "--sheet reads another of the sheets: A, B." in said
    assert "Columns" not in said
