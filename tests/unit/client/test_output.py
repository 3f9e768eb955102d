"""How reports are printed, and figures written."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from google.protobuf import struct_pb2

from services.gateway.pages import formatting
from tests.unit.client.fakes import JOB, job, result
from touchstone.v1 import comparison_pb2, item_result_pb2, job_pb2
from touchstone_client.command import figures, output
from touchstone_client.command.documents import document, word
from touchstone_client.command.output import Column, Report, Table, show

TABLE = Table(
    (
        Column("name", "name"),
        Column("score", "score", figures.score, right=True),
        Column("raw", ""),
        Column("pair", "pair", lambda pair: "–".join(map(str, pair)), data=False),
        Column("empty", "empty", lambda value: value or ""),
    ),
    [("a|b", 0.5, [1, 2], (1, 2), ""), ("long name", None, [], (3, 4), "")],
    title="A table",
)
REPORT = Report([TABLE], facts={"job": "x"}, notes=["A note."], heading="All")


def printed(capsys: pytest.CaptureFixture[str], report: Report, format: str) -> str:
    show(report, format)
    return capsys.readouterr().out


def test_a_pipe_gets_aligned_text_without_colour(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, REPORT, "table") == (
        "All\n\njob  x\n\nA table\nname        score  pair\na|b        0.5000  1–2\nlong name       –  3–4\n\nA note.\n"
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "escapes"), [("", True), ("1", False)])
def test_a_terminal_gets_colour_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, no_color: str, escapes: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    if not no_color:
        monkeypatch.delenv("NO_COLOR")
    show(Report([Table([Column("status", "status")], [["failed"]])]), "table")
    assert ("\x1b[" in terminal.getvalue()) == escapes
    assert "failed" in terminal.getvalue()


def test_csv_has_the_data_and_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(capsys, REPORT, "csv"))))
    assert rows[0] == {"name": "a|b", "score": "0.5", "raw": "[1, 2]", "empty": ""}
    assert rows[1]["score"] == ""


def test_no_spreadsheet_takes_a_text_for_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table([Column("text", "text"), Column("number", "number")], [["=1+1", -0.5]])
    assert printed(capsys, Report([table]), "csv") == "text,number\n'=1+1,-0.5\n"


def test_json_is_the_rows_or_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, REPORT, "json"))[1] == {
        "name": "long name",
        "score": None,
        "raw": [],
        "empty": "",
    }
    assert json.loads(printed(capsys, Report([TABLE], document={"a": "é"}), "json")) == {"a": "é"}


def test_markdown_escapes_what_would_break_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, REPORT, "markdown") == (
        "# All\n\n- job: x\n\n## A table\n\n| name | score | pair |\n| --- | ---: | --- |\n"
        "| a\\|b | 0.5000 | 1–2 |\n| long name | – | 3–4 |\n\n- A note.\n"
    )


def test_a_models_text_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table([Column("text", "text")], [["\x1b[2Jgone\x07"]])
    assert "\x1b" not in printed(capsys, Report([table]), "table")


def test_a_whole_text_keeps_its_lines_and_nothing_that_steers(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("field", "field"), Column("value", "value", whole=True)]
    report = Report([Table(columns, [["prompt", "one\n\ttwo\r\x1b[2J"], ["task", "rte"]])])
    assert printed(capsys, report, "table") == "field   value\nprompt  one\n        \ttwo��[2J\ntask    rte\n"


def test_a_document_has_words_times_and_numbers() -> None:
    sampling = job_pb2.Sampling(temperature=0.0, extra_json='{"b":1,"a":1.0}')
    made = job_pb2.Job(
        job_id="x", state=job_pb2.Job.STATE_COMPLETED, spec=job_pb2.JobSpec(project_id=7, sampling=sampling)
    )
    made.created_at.FromJsonString("2026-11-20T14:04:09Z")
    found = document(made)
    assert (found["state"], found["created_at"], found["spec"]["project_id"]) == (
        "completed",
        "2026-11-20T14:04:09Z",
        7,
    )
    assert json.dumps(found["spec"]["sampling"]) == '{"temperature": 0.0, "extra": {"b": 1, "a": 1.0}}'
    old = job_pb2.Sampling(extra=struct_pb2.Struct(fields={"a": struct_pb2.Value(number_value=1)}))
    assert document(old) == {"extra": {"a": 1.0}}
    assert document(job_pb2.Sampling()) == {}
    assert "finished_at" not in found
    item = item_result_pb2.ItemResult(statistics={"correct": 1})
    assert document(item)["statistics"] == {"correct": 1.0}
    item = item_result_pb2.ItemResult(input_tokens=5, output_untold=True)
    assert (document(item)["input_tokens"], document(item)["output_tokens"]) == (5, None)


@pytest.mark.parametrize(
    ("value", "enum", "said"),
    [
        (comparison_pb2.Verdict.Name(comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN), "Verdict", "no_difference_shown"),
        ("RUN_MARK_VALID", "RunMark", "valid"),
    ],
)
def test_enums_are_words(value: str, enum: str, said: str) -> None:
    assert word(value, enum) == said


@pytest.mark.parametrize("seconds", [0.01, 0.2, 1, 9.96, 40, 59.6, 61, 600, 5399, 5400, 7000, 100_000])
def test_times_are_written_as_on_the_pages(seconds: float) -> None:
    assert figures.time_left(seconds) == formatting.time_left(seconds)
    for low, high in ((0.5, 2.0), (1.0, 1.0), (0.99, 1.01)):
        given = (seconds, seconds * low, seconds * high)
        assert figures.time_range(*given) == formatting.time_range(*given)


@pytest.mark.parametrize("value", [0, 0.0123, 3.94, 47.31, 99.96, 1204.4])
def test_rates_are_written_as_on_the_pages(value: float) -> None:
    assert figures.rate(value) == formatting.rate(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (1, "$1.00"),
        (0.424, "$0.42"),
        (0.1, "$0.10"),
        (0.0354, "$0.035"),
        (4e-5, "$0.000040"),
    ],
)
def test_money_keeps_two_figures(value: float, said: str) -> None:
    assert figures.dollars(value) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (999, "999 B"), (12_300_000, "12.3 MB"), (1e9, "1 GB")])
def test_sizes_are_in_powers_of_ten(count: float, said: str) -> None:
    assert figures.size(count) == said


def test_figures_in_words() -> None:
    assert (figures.score(0.5), figures.score(-0.25), figures.score(None)) == ("0.5000", "−0.2500", "–")
    assert (figures.signed(0.01), figures.signed(-0.01)) == ("+0.0100", "−0.0100")
    assert {figures.signed(value) for value in (0.0, -0.0, 0.00001, -0.00001)} == {"0.0000"}
    assert (figures.p_value(0.00001), figures.p_value(0.05), figures.p_value(None)) == ("< 0.0001", "0.0500", "–")
    assert (figures.places(1, 3), figures.places(2, 2), figures.places(0, 0)) == ("1–3", "2", "")
    progress = job_pb2.Progress(eta_s=1320, eta_low_s=1080, eta_high_s=1620)
    assert figures.left(progress) == "22 min left (18–27)"
    assert figures.left(job_pb2.Progress()) == ""


def test_scores_follow_their_own_range() -> None:
    from touchstone_client.command.scores import report

    made = report(job(), result())
    (table,) = made.tables
    assert [row["mean"] for row in table.records()] == [0.8, 0.6, 0.7]
    assert output.plain(made).splitlines()[-1].split() == ["all", "score", "0.7000", "0.6800", "to", "0.7200", "1,000"]


@pytest.mark.parametrize(("columns", "seen"), [(200, ["job", "extra", "score"]), (70, ["job", "score"]), (41, ["job"])])
def test_a_narrow_terminal_loses_columns_and_never_half_an_id(
    monkeypatch: pytest.MonkeyPatch, columns: int, seen: list[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = Table(
        [Column("job", "job"), Column("extra", "extra", extra=True), Column("score", "score")], [[JOB, "x" * 30, "0.5"]]
    )
    show(Report([made]), "table")
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    heading = next(line.split() for line in text.splitlines() if line.strip())
    assert heading == seen
    assert JOB in text
    assert ("Some columns do not fit here" in " ".join(text.split())) == (len(seen) < 3)
