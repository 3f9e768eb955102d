"""What compared runs cost, and which of them is cheaper."""

from __future__ import annotations

from services.results.storage.database import Connection
from tests.unit.results.comparison.advised import advice
from tests.unit.results.comparisons import compared
from tests.unit.results.finished import finished, said, share_right, task


def test_equivalent_runs_are_chosen_by_cost(connection: Connection) -> None:
    pattern = share_right(0.7, 2000, 1)
    response = advice(connection, {"ada": [pattern], "ben": [pattern[:-1] + "1"]}, margin=0.05)
    assert response.recommendations[0].endswith(
        "are equivalent within 5.0 points: choose by cost, speed or other needs."
    )


def test_the_cheaper_of_two_that_are_not_separated_is_named(connection: Connection) -> None:
    for model, cost, pattern in (("dear", 0.02, "1" * 60 + "0" * 40), ("cheap", 0.005, "0" * 41 + "1" * 59)):
        results = [said(item, "yes" if mark == "1" else "no", cost_usd=cost) for item, mark in enumerate(pattern)]
        finished(connection, model, task("t", results), model=model)
    response = compared(connection, "dear", "cheap")
    (line,) = [text for text in response.recommendations if "cost" in text]
    assert line.startswith(
        "cheap costs 75 % less than dear (95 % interval 75 to 75 % on 100 items), and no loss is shown; "
        "a loss of up to "
    )


def test_a_saving_that_one_dear_item_makes_is_not_told(connection: Connection) -> None:
    for model, dear, pattern in (("ada", 1.0, "1" * 60 + "0" * 40), ("ben", 0.01, "0" * 41 + "1" * 59)):
        results = [said(item, "yes" if mark == "1" else "no", cost_usd=0.01) for item, mark in enumerate(pattern)]
        results[0].cost_usd = dear
        finished(connection, model, task("t", results), model=model)
    assert not any("cost" in text for text in compared(connection, "ada", "ben").recommendations)


def test_costs_are_compared_on_the_common_items_alone(connection: Connection) -> None:
    for model, cost, extra in (("ada", 0.02, 30), ("ben", 0.01, 0)):
        results = [said(n, "yes", cost_usd=cost if n < 30 else 9.0) for n in range(30 + extra)]
        finished(connection, model, task("t", results), model=model)
    (line,) = [text for text in compared(connection, "ada", "ben").recommendations if "costs" in text]
    assert line.startswith("ben costs 50 % less than ada (95 % interval 50 to 50 % on 30 items)")
