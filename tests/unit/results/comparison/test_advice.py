"""Recommendations follow from the figures alone."""

from __future__ import annotations

from services.results.storage.database import Connection
from tests.unit.results.builders import CUT, UNPARSED
from tests.unit.results.comparison.advised import advice
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, said, share_right, task
from touchstone.v1 import comparison_pb2


def texts(response: comparison_pb2.CompareResponse) -> list[str]:
    # How many runs there are differs between the comparisons of one database.
    notes = [note for note in response.notes if not note.startswith("Re-asking noise")]
    return [*response.recommendations, *notes, *(one.words for one in response.differences)]


def swapped(text: str) -> str:
    return text.replace("ada", "\0").replace("ben", "ada").replace("\0", "ben")


def test_exchanging_two_models_items_exchanges_the_text(connection: Connection) -> None:
    strong = [share_right(0.9, 200, 1), share_right(0.5, 200, 2)]
    mixed = [share_right(0.5, 200, 3), share_right(0.9, 200, 4)]
    weak = [share_right(0.5, 200, 5), share_right(0.4, 200, 6)]
    for number, (first, second) in enumerate(((strong, weak), (strong, mixed), (mixed, weak))):
        one = texts(advice(connection, {"ada": first, "ben": second}, f"{number}-one"))
        two = texts(advice(connection, {"ada": second, "ben": first}, f"{number}-two"))
        assert [swapped(text) for text in one] == two
        assert one != two


def test_a_perfect_model_is_shown_to_be_better_than_an_inverted_one(connection: Connection) -> None:
    response = advice(connection, {"oracle": ["1" * 50] * 3, "inverted": ["0" * 50] * 3})
    whole = difference(response)
    assert (whole.a, whole.difference, whole.verdict) == ("j-oracle", 1.0, comparison_pb2.VERDICT_BETTER)
    assert difference(response, "t0").only_a == 50
    assert response.recommendations[0].startswith("oracle is shown to be better than inverted, by 100.0 points.")
    assert "Prefer oracle" in response.recommendations[0]


def test_of_identical_runs_none_is_preferred(connection: Connection) -> None:
    pattern = share_right(0.7, 300, 1)
    response = advice(connection, {"ada": [pattern], "ben": [pattern]})
    for found in response.differences:
        assert found.difference == 0
        assert found.verdict in (comparison_pb2.VERDICT_EQUIVALENT, comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN)
    assert not any("Prefer" in text or "better than" in text for text in response.recommendations)
    assert [(run.rank_low, run.rank_high) for run in response.runs] == [(1, 2), (1, 2)]


def test_what_is_not_separated_is_told_with_the_items_it_would_take(connection: Connection) -> None:
    response = advice(connection, {"ada": ["1" * 62 + "0" * 38], "ben": ["0" * 42 + "1" * 58]})
    (said_so, *_) = response.recommendations
    assert said_so.startswith("The data do not separate ada from ben: the difference of 4.0 points may be chance.")
    found = difference(response)
    expected = found.n * (found.smallest_difference / found.difference) ** 2
    told = int(said_so.split("about ")[1].split(" items")[0].replace(",", ""))
    assert expected <= told <= expected * 1.1
    assert found.items_needed == told


def test_a_difference_that_is_shown_needs_no_more_items(connection: Connection) -> None:
    shown = difference(advice(connection, {"ada": ["1" * 50], "ben": ["0" * 50]}))
    assert not shown.HasField("items_needed")
    alike = difference(advice(connection, {"cid": ["10" * 50], "dan": ["10" * 50]}, "k"))
    assert not alike.HasField("items_needed")


def test_nothing_is_said_of_speed(connection: Connection) -> None:
    """How long an answer takes tells of the load on the server, too."""
    for model, latency in (("slow", 100.0), ("fast", 40.0)):
        results = [said(item, "yes" if item % 2 else "no", cost_usd=0.01) for item in range(30)]
        for one in results:
            one.latency_ms = latency
        finished(connection, model, task("t", results), model=model)
    found = compared(connection, "slow", "fast").recommendations
    assert not any("time" in text or "faster" in text for text in found)


def test_tasks_on_which_the_runner_up_is_better_are_named(connection: Connection) -> None:
    strong, weak = "1" * 80, "0" * 80
    response = advice(connection, {"ada": [strong, strong, weak], "ben": [weak, weak, strong]})
    assert any(
        text.startswith("ada is shown to be better than ben, by 33.3 points") for text in response.recommendations
    )
    assert "ben is shown to be better than ada on T2." in response.recommendations


def test_the_best_of_several_is_told_from_those_it_is_not_separated_from(connection: Connection) -> None:
    response = advice(connection, {"ada": ["1" * 90 + "0" * 10], "ben": ["0" * 12 + "1" * 88], "cid": ["0" * 100]})
    joined = " ".join(response.recommendations)
    assert "ada is shown to be better than cid" in joined
    assert "do not separate ada from ben" in joined
    assert "Prefer" not in joined


def test_against_a_baseline_each_run_is_told_apart(connection: Connection) -> None:
    runs = {"up": ["1" * 80], "prod": ["10" * 40], "down": ["0" * 80]}
    response = advice(connection, runs, baseline="j-prod")
    joined = " ".join(response.recommendations)
    assert "prod is shown to be better than down" in joined
    assert "prod is shown to be worse than up" in joined
    assert "Prefer" not in joined


def test_unread_and_cut_answers_are_to_be_put_right_first(connection: Connection) -> None:
    finished(connection, "good", task("t", right_or_wrong("1" * 40)), model="good")
    for model, outcome in (("unread", UNPARSED), ("cut", CUT)):
        results = [said(item, "yes", outcome=outcome if item < 10 else 1) for item in range(40)]
        finished(connection, model, task("t", results), model=model)
    response = compared(connection, "good", "unread", "cut")
    told = " ".join(response.recommendations[:2])
    assert "unread: 25.0% of the answers could not be read. They count as wrong here." in told
    assert "Check the unread answers of job unread first" in told
    assert "Re-run the truncated items of job cut with a higher token limit." in told
    assert response.runs[0].job_id == "good"
    assert {run.job_id for run in response.runs if run.caution} == {"unread", "cut"}
    assert not any(run.not_ranked_reason for run in response.runs)
    # Had all they left been right they were as good.
    assert {(run.rank_low, run.rank_high) for run in response.runs} == {(1, 3)}
    assert "Prefer" not in " ".join(response.recommendations)


def test_runs_of_one_model_are_told_apart_by_what_differs(connection: Connection) -> None:
    for job_id, endpoint in (("a", "here"), ("b", "there")):
        pattern = "1" * 40 if job_id == "a" else "0" * 40
        finished(connection, job_id, task("t", right_or_wrong(pattern)), model="m1", endpoint=endpoint)
    finished(connection, "c", task("t", right_or_wrong("0" * 40)), model="m1", endpoint="there", configuration="other")
    assert compared(connection, "a", "b").recommendations[0].startswith("m1@here is shown to be better than m1@there")
    response = compared(connection, "a", "b", "c")
    assert response.recommendations[0].startswith(
        "m1@here is shown to be better than every other run, by 100.0 points."
    )
    words = " ".join(one.words for one in response.differences)
    assert "m1 (configuration m1@there)" in words
    assert "m1 (configuration other)" in words
