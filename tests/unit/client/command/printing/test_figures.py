"""Figures as the command writes them."""

from __future__ import annotations

import pytest

from services.gateway.pages.display import formatting
from tests.unit.client.fakes import job, result
from touchstone.v1 import job_pb2
from touchstone_client.command.printing import figures, output


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
    from touchstone_client.command.reports.scores import report

    made = report(job(), result())
    (table,) = made.tables
    assert [row["mean"] for row in table.records()] == [0.8, 0.6, 0.7]
    assert output.plain(made).splitlines()[-1].split() == ["all", "score", "0.7000", "0.6800", "to", "0.7200", "1,000"]
