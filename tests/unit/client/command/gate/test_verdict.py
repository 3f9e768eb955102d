"""The verdict of a gate."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.command.gate.compared import PASSING, REGRESSING, UNDECIDED, Pipeline, compared, difference
from tests.unit.client.fakes import JOB, OTHER
from touchstone.v1 import comparison_pb2
from touchstone_client.command.gate.verdict import judge


@pytest.mark.parametrize(
    ("comparison", "code", "said"),
    [
        (PASSING, 0, "Gate: passed. A drop of 0.0020. At 95 % confidence the drop is less than 0.0080"),
        (REGRESSING, 1, "Gate: regression. A significant drop of 0.0500; at 95 % confidence it is more than 0.0300"),
        (UNDECIDED, 2, "Gate: undecided. A drop of 0.0100. At 95 % confidence a drop could be as large as 0.0400"),
        (compared(difference(0.03, 0.01, 0.05, 0.01)), 0, "A rise of 0.0300. At 95 % confidence there is no drop"),
        (compared(difference(0.03, -0.02, 0.08, 0.3)), 2, "could be as large as 0.0200"),
        # A drop that is shown, and shown to be small enough.
        (compared(difference(-0.004, -0.009, -0.001, 0.03)), 0, "Gate: passed. A drop of 0.0040"),
        # The interval excludes 0 and the exact test does not: nothing is shown.
        (compared(difference(-0.02, -0.04, -0.0001, 0.11)), 2, "Gate: undecided"),
        # A one-sided test at 5 % is a two-sided one at 10 %.
        (compared(difference(-0.02, -0.04, -0.0001, 0.099)), 1, "Gate: regression"),
        (compared(difference(-0.01, -0.04, 0.02, 0.6), reason="8 % could not be read"), 3, "8 % could not be read"),
        (compared(comparison_pb2.Difference(a=JOB, b=OTHER, metric="score", reason="modes differ")), 3, "modes differ"),
        (compared(), 3, "does not include score"),
    ],
)
def test_each_comparison_has_its_code(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], comparison: Any, code: int, said: str
) -> None:
    pipeline.comparison = comparison
    assert pipeline.run() == code
    assert said in capsys.readouterr().out


def test_the_same_runs_in_the_other_order_are_judged_alike() -> None:
    for comparison in (PASSING, REGRESSING, UNDECIDED):
        turned = comparison_pb2.CompareResponse()
        turned.CopyFrom(comparison)
        for found in turned.differences:
            found.a, found.b, found.difference = found.b, found.a, -found.difference
            found.low, found.high = -found.high, -found.low
        one, other = (judge(each, OTHER, JOB, "score", 0.01) for each in (comparison, turned))
        assert one == other
