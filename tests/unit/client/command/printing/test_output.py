"""How reports are printed, and figures written."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from tests.unit.client.fakes import JOB
from touchstone_client.command.printing import figures
from touchstone_client.command.printing.output import Column, Report, Table, show

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


@pytest.mark.parametrize(
    ("columns", "seen"),
    [
        (200, ["job", "extra", "score", "other"]),
        (70, ["job", "score", "other"]),
        # The three columns take 56: 36 + 5 + 5, a gap of 3 beside each, and the edge.
        (56, ["job", "score", "other"]),
        (55, ["job", "score"]),
        (50, ["job", "score"]),
        (41, ["job"]),
    ],
)
def test_a_narrow_terminal_loses_columns_and_never_half_an_id(
    monkeypatch: pytest.MonkeyPatch, columns: int, seen: list[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = Table(
        [
            Column("job", "job"),
            Column("extra", "extra", extra=True),
            Column("score", "score", key=True),
            Column("other", "other"),
        ],
        [[JOB, "x" * 30, "0.5", "1"]],
    )
    show(Report([made]), "table")
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    heading = next(line.split() for line in text.splitlines() if line.strip())
    assert heading == seen
    assert JOB in text
    assert ("Some columns do not fit" in " ".join(text.split())) == (len(seen) < 4)
