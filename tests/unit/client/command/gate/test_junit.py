"""The report of a gate as JUnit's XML."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from services import errors
from tests.unit.client.command.gate.compared import REGRESSING, UNDECIDED, Pipeline, compared, difference
from tests.unit.client.fakes import JOB, OTHER
from touchstone.v1 import comparison_pb2
from touchstone_client.command.gate.junit import write
from touchstone_client.command.gate.verdict import Outcome


def junit(pipeline: Pipeline, file: Path) -> tuple[int, ElementTree.Element]:
    code = pipeline.run("--junit", str(file))
    return code, ElementTree.parse(file).getroot()


def test_junit_has_a_case_for_the_suite_and_each_task(pipeline: Pipeline, tmp_path: Path) -> None:
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert (code, root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == (0, "2", "0", "0")
    assert [case.attrib["name"] for case in root] == ["suite", "rte"]
    assert {case.attrib["classname"] for case in root} == {"touchstone.glue"}


def test_junit_is_xml_whatever_an_error_says(tmp_path: Path) -> None:
    outcome = Outcome(3, "The job failed: \x1b[31m no such \x00 model \ufffe")
    write(tmp_path / "gate.xml", outcome, "glue", 1.0)
    root = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert "no such" in root[0][1].attrib["message"]


def test_junit_fails_with_a_regression(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.comparison = REGRESSING
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert (code, root.attrib["failures"]) == (1, "2")
    assert "A significant drop" in "".join(part.attrib["message"] for part in root[0].iter("failure"))


def test_a_worse_task_fails_in_junit_alone(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.comparison = compared(
        difference(-0.002, -0.008, 0.004, 0.6),
        difference(-0.09, -0.1, -0.08, 0.001, "rte", p_adjusted=0.002),
        difference(-0.09, -0.1, -0.08, 0.04, "wnli", p_adjusted=0.2),
        comparison_pb2.Difference(a=OTHER, b=JOB, task="cola", metric="accuracy", reason="the prompts differ"),
    )
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert code == 0
    assert [(case.attrib["name"], [part.tag for part in case][1:]) for case in root] == [
        ("suite", []),
        ("rte", ["failure"]),
        ("wnli", []),
        ("cola", ["skipped"]),
    ]


@pytest.mark.parametrize("comparison", [UNDECIDED, errors.ConflictError("Not now <here>.")])
def test_junit_has_an_error_where_there_is_no_answer(pipeline: Pipeline, tmp_path: Path, comparison: Any) -> None:
    pipeline.comparison = comparison
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert root.attrib["errors"] == "1"
    assert [part.attrib["type"] for part in root[0].iter("error")] == [f"exit {code}"]
