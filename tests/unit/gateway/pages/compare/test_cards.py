"""Counts, pairs, cost and speed of a comparison."""

from __future__ import annotations

import pytest

from services.gateway.pages.compare.cards import Cell, cost_per_thousand
from services.gateway.pages.compare.view import View
from tests.unit.gateway.pages.compare.compared import JOBS, OPEN, add, figures, found, job, priced, rows

A, B = JOBS[:2]


def test_counts_add_up_and_link_to_their_rows() -> None:
    answer = found("a", "b", tasks=("t", "u"))
    add(answer, 0, 1)
    add(answer, 0, 1, "u")
    add(answer, 0, 1, "t", verdict=OPEN, p_value=0.4)
    shown = figures(answer, rows=rows(("t", 10, 5, 2, 1), ("u", 20, 6, 0, 3))).head_to_head
    assert shown is not None
    assert shown.items == sum(count for count, *_ in shown.figures) == 47
    assert [(count, address) for count, _, address, _ in shown.figures] == [
        (30, f"/side-by-side?jobs={A},{B}&filter=all_right"),
        (2, f"/side-by-side?jobs={A},{B}&filter=only_right&only=A"),
        (4, f"/side-by-side?jobs={A},{B}&filter=only_right&only=B"),
        (11, f"/side-by-side?jobs={A},{B}&filter=all_wrong"),
    ]
    assert [(one.title, one.mine, one.theirs, one.shown) for one in shown.tasks] == [
        ("U", 0, 3, True),
        ("T", 2, 1, False),
    ]
    assert shown.tasks[0].theirs_address.endswith("&filter=only_right&only=B&task=u")


def test_many_tasks_unfold_and_nothing_counted_is_said() -> None:
    answer = found("a", "b")
    add(answer, 0, 1)
    shown = figures(answer, rows=rows(*((f"t{n}", 1, 1, 1, 1) for n in range(57)))).head_to_head
    assert shown is not None
    assert (len(shown.tasks), len(shown.further)) == (12, 45)
    assert figures(answer, rows=rows(("t", 0, 0, 0, 0))).head_to_head is None
    assert figures(answer).head_to_head is None


def test_the_matrix_has_every_pair_both_ways() -> None:
    answer = found("a", "b", "c")
    add(answer, 0, 1)
    add(answer, 1, 2, verdict=OPEN, p_value=0.3)
    shown = figures(answer, view=View(JOBS[:3], baseline=JOBS[1]))
    assert [side.name for side, _ in shown.matrix] == ["a", "b", "c"]
    cells = {(row, column): cell for row, (_, line) in enumerate(shown.matrix) for column, cell in enumerate(line)}
    assert cells[0, 0] is None
    here, back, untested = (cells[place] or Cell("") for place in ((0, 1), (1, 0), (0, 2)))
    assert (here.text, here.interval, here.shown) == ("+5.0", "1.0 to 9.0", True)
    assert (back.text, back.interval, back.shown) == ("−5.0", "−9.0 to −1.0", True)
    assert here.address == f"/compare?jobs={A},{B}"
    assert (untested.text, untested.address) == ("", f"/compare?jobs={A},{JOBS[2]}")
    assert not figures(found("a", "b")).matrix


def test_cost_is_that_of_a_thousand_answers_that_were_called_for() -> None:
    result = priced(2.0, 500)
    assert cost_per_thousand(result) == 4.0
    result.items_reused = 100
    assert cost_per_thousand(result) == 5.0
    result.items_reused = 500
    assert cost_per_thousand(result) is None
    assert cost_per_thousand(priced(0.0)) is None


@pytest.mark.parametrize(("costs", "unpriced", "drawn"), [((1.0, 2.0), [], True), ((1.0, 0.0), ["b"], False)])
def test_runs_without_a_cost_are_named(costs: tuple[float, float], unpriced: list[str], drawn: bool) -> None:
    answer = found("a", "b")
    add(answer, 0, 1)
    results = {job_id: priced(cost) for job_id, cost in zip(JOBS, costs, strict=False)}
    shown = figures(answer, results=results, jobs={A: job(4), B: job(4)})
    assert (shown.costs.unpriced, shown.costs.plot is not None) == (unpriced, drawn)
    assert shown.concurrency == "concurrency 4"
    assert dict(shown.speed)["Latency p50"] == ["120 ms", "120 ms"]
