"""A difference as the page turns it."""

from __future__ import annotations

import pytest

from services.gateway.pages.compare.differences import to
from tests.unit.gateway.pages.compare.compared import OPEN, add, figures, found


@pytest.mark.parametrize(
    ("interval", "words"), [((0.015, 0.048), "1.5 to 4.8"), ((-0.103, 0.103), "−10.3 to 10.3"), (None, "–")]
)
def test_an_interval_stands_in_a_column(interval: tuple[float, float] | None, words: str) -> None:
    assert to(interval) == words


def test_a_line_has_both_scores_and_what_the_items_can_show() -> None:
    answer = found("a", "b")
    add(answer, 0, 1)
    add(answer, 0, 1, "t", smallest_difference=0.0521, n=100)
    (line,) = figures(answer).lines
    assert (line.mine, line.theirs, line.reach, line.n) == ("70.0", "69.0", "5.2", 100)
    assert (line.title, line.metric, line.test) == ("T", "accuracy", "exact McNemar")


def test_a_task_of_which_nothing_is_known_has_dashes() -> None:
    answer = found("a", "b")
    answer.differences.add(a=answer.runs[0].job_id, b=answer.runs[1].job_id, task="u", metric="f1", verdict=OPEN)
    (line,) = figures(answer).lines
    assert (line.mine, line.change, line.interval, line.p, line.adjusted, line.reach) == ("–",) * 6
