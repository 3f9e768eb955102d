"""Codes with which a gate ends."""

from __future__ import annotations

import pytest

from services import errors
from tests.unit.client.command.gate.compared import Pipeline, difference
from tests.unit.client.fakes import result
from touchstone.v1 import comparison_pb2, results_service_pb2


def test_a_refusal_has_a_code_of_its_own(pipeline: Pipeline) -> None:
    pipeline.fakes.answers["CreateJob"] = errors.InvalidRequestError("Unknown suite.", "spec.suite")
    assert pipeline.run() == 4


def test_silence_has_a_code_of_its_own(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline.fakes.answers["Compare"] = errors.UnavailableError("Not now.")
    assert pipeline.run() == 5


def test_a_defect_of_the_gate_is_no_regression(pipeline: Pipeline) -> None:
    """Python's own exit code for it would be 1."""
    pipeline.fakes.answers["GetJobResult"] = lambda request: results_service_pb2.GetJobResultResponse()
    broken = comparison_pb2.CompareResponse(items=2000, differences=[difference(0.1, 0, 0.2, 0.1, stderr=0.1)])
    pipeline.last_time = broken
    pipeline.fakes.answers["GetJobResult"] = results_service_pb2.GetJobResultResponse(result=result())
    assert pipeline.run() == 5


@pytest.mark.parametrize(
    "more",
    [
        ["--max-drop", "0"],
        ["--max-drop", "one"],
        ["--limit", "0"],
        ["--bogus"],
        ["--junit", "/nowhere/at/all.xml"],
        ["--timeout", "-1"],
        ["--custom-config", "[1]"],
    ],
)
def test_wrong_arguments_are_code_four_and_not_undecided(
    pipeline: Pipeline, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        pipeline.run(*more)
    assert ended.value.code == 4
    assert "usage: touchstone gate" in capsys.readouterr().err
    assert pipeline.fakes.heard == []
