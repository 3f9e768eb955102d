"""Rows of several jobs, row beside row."""

from __future__ import annotations

import random

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results import duckdb_store, job_reads
from services.results.comparison.compare import compare
from services.results.database import Connection
from services.results.intervals import score_interval
from services.results.paging import MAX_PAGE_BYTES
from services.results.side_by_side.listing import SideBySide
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import ERROR, UNPARSED, batch, event, job, plan
from tests.unit.results.dataset_runs import EXACT, TOKEN_F1, completed, row, stored
from tests.unit.results.finished import finished, right_or_wrong, said, task
from touchstone.v1 import item_result_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.comparison_pb2 import CompareRequest
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Ask


def ask(
    connection: Connection, *jobs: str, visible: Visibility = EVERYTHING, **fields: object
) -> pb.ListSideBySideResponse:
    request = Ask(job_ids=jobs or ("a", "b"), **fields)  # type: ignore[arg-type]
    return SideBySide().rows(connection, request, visible)


def items(page: pb.ListSideBySideResponse) -> list[int]:
    return [row.item for row in page.rows]


def pair(connection: Connection, here: str, there: str) -> None:
    """Two runs of a suite, by which items are right."""
    for job_id, pattern in (("a", here), ("b", there)):
        finished(connection, job_id, task("t", right_or_wrong(pattern)), model=f"m{job_id}")


# -- matching ----------------------------------------------------------------------------------------------------------


def test_rows_of_datasets_are_matched_by_custom_id_whatever_their_numbers(connection: Connection) -> None:
    completed(connection, "a", [row(number, 1.0) for number in range(3)], EXACT)
    completed(
        connection, "b", [row(number + 10, 0.0, custom_id=f"candidate-{2 - number}") for number in range(3)], EXACT
    )
    page = ask(connection)
    assert [(one.custom_id, one.item, [item.result.item for item in one.items]) for one in page.rows] == [
        ("candidate-0", 0, [0, 12]),
        ("candidate-1", 1, [1, 11]),
        ("candidate-2", 2, [2, 10]),
    ]
    assert [one.items[0].score for one in page.rows] == [1, 1, 1]


@pytest.mark.parametrize("other", ["", "candidate-0"])
def test_where_a_custom_id_is_missing_or_doubled_numbers_match(connection: Connection, other: str) -> None:
    completed(connection, "a", [row(0, 1.0), row(1, 1.0, custom_id=other)], EXACT)
    completed(connection, "b", [row(0, 1.0), row(1, 1.0)], EXACT)
    page = ask(connection)
    assert [(one.item, len([item for item in one.items if item.job_id])) for one in page.rows] == [(0, 2), (1, 2)]


def test_a_row_that_a_job_lacks_has_an_empty_place(connection: Connection) -> None:
    completed(connection, "a", [row(0, 1.0), row(2, 1.0)], EXACT)
    completed(connection, "b", [row(1, 1.0), row(2, 1.0)], EXACT)
    page = ask(connection, with_diffs=True)
    assert [[item.job_id for item in one.items] for one in page.rows] == [["a", ""], ["", "b"], ["a", "b"]]
    assert (page.count_all, page.total_size, [run.rows for run in page.runs]) == (3, 3, [1, 1])
    assert [len(one.diffs[1].parts) for one in page.rows] == [0, 0, 1]


def test_items_of_the_same_number_and_other_content_are_other_rows(connection: Connection) -> None:
    for job_id, first in (("a", "old"), ("b", "new")):
        finished(connection, job_id, task("t", [said(0, "yes", item_hash=first), said(1, "yes")]))
    page = ask(connection)
    assert [(one.item, len([item for item in one.items if item.job_id])) for one in page.rows] == [
        (0, 1),
        (0, 1),
        (1, 2),
    ]


def test_jobs_without_a_common_row_are_refused(connection: Connection) -> None:
    completed(connection, "a", [row(0, 1.0)], EXACT)
    completed(connection, "b", [row(1, 1.0)], EXACT)
    finished(connection, "c", task("t", right_or_wrong("11")))
    for jobs in (("a", "b"), ("a", "c")):
        with pytest.raises(InvalidRequestError, match="no row in common"):
            ask(connection, *jobs)


def test_a_task_without_rows_is_an_empty_page_where_other_tasks_have_some(connection: Connection) -> None:
    for job_id, tasks in (("a", ["t", "u"]), ("b", ["t", "u"])):
        made = job(job_id, *(plan(name, 2) for name in tasks))
        duckdb_store.store_events(connection, [event(f"0-{job_id}", made)])
        duckdb_store.store_items(connection, [batch(job_id, "t", [said(0, "yes")])])
    assert items(ask(connection, task="t")) == [0]
    assert not ask(connection, task="u").rows
    with pytest.raises(NotFoundError, match=r"No job has a task 'v'\. They have: t, u"):
        ask(connection, task="v")


# -- filters and figures -----------------------------------------------------------------------------------------------


def test_rows_are_told_apart_by_who_is_right(connection: Connection) -> None:
    pair(connection, "110010", "101010")
    assert items(ask(connection, filter=Ask.FILTER_ALL_RIGHT)) == [0, 4]
    assert items(ask(connection, filter=Ask.FILTER_ALL_WRONG)) == [3, 5]
    assert items(ask(connection, filter=Ask.FILTER_ONLY_RIGHT, only_job_id="a")) == [1]
    assert items(ask(connection, filter=Ask.FILTER_ONLY_RIGHT, only_job_id="b")) == [2]
    assert items(ask(connection, filter=Ask.FILTER_ONLY_WRONG, only_job_id="a")) == [2]
    assert items(ask(connection, filter=Ask.FILTER_AGREE)) == [0, 3, 4, 5]
    page = ask(connection, filter=Ask.FILTER_DISAGREE)
    assert (items(page), page.total_size) == ([1, 2], 2)
    assert (page.count_all, page.count_agree, page.count_all_right, page.count_all_wrong) == (6, 4, 2, 2)
    assert [(run.only_right, run.only_wrong, run.rows, run.mean_score) for run in page.runs] == [(1, 1, 6, 0.5)] * 2
    assert not any(one.agree for one in page.rows)


def test_four_jobs_stand_beside_each_other(connection: Connection) -> None:
    for job_id, pattern in (("a", "1100"), ("b", "1000"), ("c", "1010"), ("d", "1000")):
        finished(connection, job_id, task("t", right_or_wrong(pattern)))
    page = ask(connection, *"dcba", filter=Ask.FILTER_ONLY_RIGHT, only_job_id="c")
    assert [[item.job_id for item in one.items] for one in page.rows] == [["d", "c", "b", "a"]]
    assert [run.only_right for run in page.runs] == [0, 1, 0, 1]
    assert items(ask(connection, *"abcd", filter=Ask.FILTER_ALL_RIGHT)) == [0]
    assert not ask(connection, *"abcd", filter=Ask.FILTER_ONLY_WRONG, only_job_id="b").rows


def test_errors_and_missing_rows_are_listed_and_count_in_no_figure(connection: Connection) -> None:
    finished(connection, "a", task("t", [*right_or_wrong("11"), said(2, "yes", outcome=ERROR), said(3, "no")]))
    finished(connection, "b", task("t", right_or_wrong("101")))
    page = ask(connection)
    assert (items(page), page.count_all, [run.rows for run in page.runs]) == ([0, 1, 2, 3], 4, [2, 2])
    assert items(ask(connection, filter=Ask.FILTER_ONLY_RIGHT, only_job_id="b")) == []
    assert items(ask(connection, filter=Ask.FILTER_DISAGREE)) == [1]


def test_answers_without_a_reference_are_neither_right_nor_wrong_and_agree_by_their_words(
    connection: Connection,
) -> None:
    said_here = ["The patient  is\nwell.", "No, by no means at all.", "Yes", "same start of it, other end", " "]
    said_there = ["The patient is well.", "No, by all means at all.", "No", "same start of it, another end", ""]
    for job_id, responses in (("a", said_here), ("b", said_there)):
        completed(connection, job_id, [row(number, response=text) for number, text in enumerate(responses)])
    page = ask(connection)
    assert [one.agree for one in page.rows] == [True, False, False, False, True]
    assert (page.count_agree, page.count_all_right, page.count_all_wrong) == (2, 0, 0)
    assert not any(run.HasField("mean_score") for run in page.runs)


def test_long_white_space_at_the_beginning_does_not_hide_a_difference(connection: Connection) -> None:
    for job_id, text in (("a", " " * 90 + "yes"), ("b", "\n" * 95 + "yes"), ("c", " " * 90 + "no")):
        completed(connection, job_id, [row(0, response=text)])
    assert ask(connection, "a", "b").rows[0].agree
    assert not ask(connection, "a", "c").rows[0].agree


def test_one_read_answer_beside_one_that_is_not_disagrees(connection: Connection) -> None:
    finished(connection, "a", task("t", [said(0, "yes", response="x"), said(1, "", outcome=UNPARSED, response="x")]))
    finished(connection, "b", task("t", [said(number, "", outcome=UNPARSED, response="x") for number in (0, 1)]))
    assert [one.agree for one in ask(connection).rows] == [False, True]


def test_graded_scores_average_and_make_nothing_right_or_wrong(connection: Connection) -> None:
    completed(connection, "a", [row(0, 0.5, TOKEN_F1), row(1, 1.0, TOKEN_F1)], TOKEN_F1)
    completed(connection, "b", [row(0, 1.0), row(1, 0.0)], EXACT)
    page = ask(connection)
    assert [run.mean_score for run in page.runs] == [0.75, 0.5]
    assert [[item.score for item in one.items] for one in page.rows] == [[0.5, 1.0], [1.0, 0.0]]
    assert [run.only_right for run in page.runs] == [0, 1]


def of_the_run(connection: Connection, job_id: str) -> tuple[float, float, float]:
    """The first metric of the job's only task, as its own result has it, with its interval."""
    metric = job_reads.get_job_result(connection, job_id).tasks[0].metrics[0]
    return metric.mean, metric.ci95_low, metric.ci95_high


def beside(run: pb.SideBySideRun) -> tuple[float, float, float]:
    return run.mean_score, run.score_ci95_low, run.score_ci95_high


def test_on_all_rows_of_a_run_its_score_has_the_runs_own_interval(connection: Connection) -> None:
    graded = [row(number, number % 4 / 3, TOKEN_F1) for number in range(20)]
    completed(connection, "a", graded, TOKEN_F1)
    completed(connection, "b", [row(number, float(number % 3 > 0)) for number in range(20)], EXACT)
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        assert beside(run) == pytest.approx(of_the_run(connection, job_id), abs=1e-12)
    assert beside(ask(connection).runs[1])[1:] == score_interval(13 / 20, 20)
    some = ask(connection, query="question 1").runs[1]
    assert some.rows == 11
    assert beside(some)[1:] == pytest.approx(score_interval(8 / 11, 11))


@pytest.mark.parametrize("repeats", [1, 3])
def test_items_of_one_passage_and_answers_to_one_item_hang_together(connection: Connection, repeats: int) -> None:
    for job_id in "ab":
        chance = random.Random(f"{job_id} {repeats}")
        answers = [
            said(item, chance.choice(["yes", "no"]), repeat=repeat, group="" if repeats > 1 else f"passage {item // 3}")
            for item in range(30)
            for repeat in range(repeats)
        ]
        finished(connection, job_id, task("t", answers, repeats=repeats))
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        assert beside(run) == pytest.approx(of_the_run(connection, job_id), abs=1e-12)


def test_the_score_over_several_tasks_is_the_jobs_own(connection: Connection) -> None:
    """Over tasks, whose items differ in number, as boards have it; and with the metrics that no single answer has."""
    for job_id, step in (("a", 1), ("b", 7)):
        numbers = [
            said(item, "1", statistics={"value": float(item * step % 5 + item % 2), "target": float(item % 5)})
            for item in range(20)
        ]
        finished(
            connection,
            job_id,
            task("t", right_or_wrong("1101")),
            task("u", right_or_wrong("0010111001"), "matthews_correlation"),
            task("v", numbers, "pearson", "spearman"),
            task("w", right_or_wrong("11"), beside=True),
        )
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        whole = job_reads.get_job_result(connection, job_id).suite_score
        assert whole.n == 34
        assert beside(run) == (whole.mean, whole.ci95_low, whole.ci95_high)


@pytest.mark.parametrize("name", ["t", "u", "w"])
def test_the_score_of_one_task_is_that_of_its_metric(connection: Connection, name: str) -> None:
    patterns = ("1101", "0010111001", "10")
    for job_id in "ab":
        finished(
            connection,
            job_id,
            task("t", right_or_wrong(patterns[0])),
            task("u", right_or_wrong(patterns[1]), "f1"),
            task("w", right_or_wrong(patterns[2]), beside=True),
        )
    (sealed,) = (one for one in job_reads.get_job_result(connection, "a").tasks if one.task == name)
    metric = sealed.metrics[0]
    expected = pytest.approx((metric.mean, metric.ci95_low, metric.ci95_high), abs=1e-12)
    assert beside(ask(connection, task=name).runs[0]) == expected


def test_on_common_rows_the_score_is_that_of_a_comparison(connection: Connection) -> None:
    for job_id, first, second in (("a", "110110", "0101"), ("b", "101", "010100")):
        finished(connection, job_id, task("t", right_or_wrong(first)), task("u", right_or_wrong(second), "f1"))
    with connection.cursor() as cursor:
        compared = compare(cursor, CompareRequest(subjects=["a", "b"]))
    scores = {run.job_id: run.scores[0] for run in compared.runs}
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        score = scores[job_id]
        assert beside(run) == (score.mean, score.ci95_low, score.ci95_high)


def test_one_graded_row_tells_nothing_of_the_spread(connection: Connection) -> None:
    for job_id in "ab":
        completed(connection, job_id, [row(0, 0.5, TOKEN_F1)], TOKEN_F1)
    run = ask(connection).runs[0]
    assert (run.mean_score, run.HasField("score_ci95_low"), run.HasField("score_ci95_high")) == (0.5, False, False)


def took(
    result: item_result_pb2.ItemResult, latency_ms: float, cost_usd: float | None = None
) -> item_result_pb2.ItemResult:
    result.latency_ms = latency_ms
    if cost_usd is not None:
        result.cost_usd = cost_usd
    return result


def test_figures_add_up_what_the_common_rows_took(connection: Connection) -> None:
    completed(connection, "a", [took(row(number, 1.0), 100, 0.5) for number in range(2)], EXACT)
    others = [took(row(0, 1.0), 200, 0.25), took(row(1, 1.0), 400), took(row(2, 1.0), 9000)]
    others[1].input_untold = True
    completed(connection, "b", others, EXACT)
    here, there = ask(connection).runs
    assert (here.mean_latency_ms, here.input_tokens, here.output_tokens, here.cost_usd) == (100, 40, 6, 1.0)
    assert (there.mean_latency_ms, there.job.job_id, there.HasField("cost_usd")) == (300, "b", False)
    assert (here.input_untold, there.input_untold, there.input_tokens, there.output_untold) == (0, 1, 20, 0)


# -- texts and conditions ----------------------------------------------------------------------------------------------


def test_a_text_and_conditions_hold_of_one_answer_and_bound_all_counts(connection: Connection) -> None:
    completed(connection, "a", [row(number, 1.0, metadata={"name": f"Ada {number}"}) for number in range(4)], EXACT)
    completed(
        connection, "b", [row(number, float(number > 1), response=f"odd {number % 2}") for number in range(4)], EXACT
    )
    page = ask(connection, query="odd 1")
    assert (items(page), page.count_all, page.runs[0].rows, page.count_all_right) == ([1, 3], 2, 2, 1)
    assert items(ask(connection, query="ada 2")) == [2]
    assert items(ask(connection, query="odd 1", conditions=pb.ItemConditions(score_high=0))) == [1]
    assert items(ask(connection, query="ada", conditions=pb.ItemConditions(score_high=0))) == []
    assert items(ask(connection, conditions=pb.ItemConditions(metadata_field="name", metadata_value="3"))) == [3]


def test_diffs_are_of_whole_responses_against_the_first_jobs(connection: Connection) -> None:
    long = "word " * 1000
    completed(connection, "a", [row(0, 1.0, response=long + "end")], EXACT)
    completed(connection, "b", [row(0, 1.0, response=long + "ending")], EXACT)
    (one,) = ask(connection, with_diffs=True).rows
    assert len(one.items[0].result.response.encode()) == 2048
    assert [(part.kind, part.text) for part in one.diffs[1].parts] == [(1, long), (2, "end"), (3, "ending")]
    assert not one.diffs[0].parts
    assert not ask(connection).rows[0].diffs


# -- pages -------------------------------------------------------------------------------------------------------------


def walk(connection: Connection, asked: SideBySide, **fields: object) -> list[str]:
    found, token = [], ""
    while True:
        request = Ask(job_ids=["a", "b"], page_size=3, page_token=token, **fields)  # type: ignore[arg-type]
        page = asked.rows(connection, request)
        assert page.total_size == page.count_all == 10
        found += [one.custom_id for one in page.rows]
        token = page.next_page_token
        if not token:
            return found


@pytest.mark.parametrize("done", [True, False])
def test_pages_walk_every_row_once_in_order(connection: Connection, done: bool) -> None:
    store = completed if done else stored
    for job_id in "ab":
        store(connection, job_id, [row(number, 1.0) for number in range(10)], EXACT)
    assert walk(connection, SideBySide()) == [f"candidate-{number}" for number in range(10)]


def test_what_is_kept_of_completed_jobs_is_dropped_when_rows_have_moved_or_a_job_is_run_again(
    connection: Connection,
) -> None:
    for job_id in "ab":
        completed(connection, job_id, [row(number, 1.0) for number in range(10)], EXACT)
    asked, expected = SideBySide(), [f"candidate-{number}" for number in range(10)]
    assert walk(connection, asked) == expected
    # As DuckDB does when a list column is updated: the same row, at the end of the table.
    connection.execute("CREATE TEMP TABLE moved AS FROM items WHERE job_id = 'a' AND item < 5")
    connection.execute("DELETE FROM items WHERE job_id = 'a' AND item < 5")
    connection.execute("INSERT INTO items FROM moved ORDER BY item DESC")
    assert walk(connection, asked) == expected
    again = stored(connection, "a", [], EXACT, planned=11)
    again.attempt, again.state = 2, job_pb2.Job.STATE_RUNNING
    duckdb_store.store_events(connection, [event("9-again", again)])
    duckdb_store.store_items(connection, [batch("a", "rows", [row(10, 1.0)], attempt=2)])
    assert asked.rows(connection, Ask(job_ids=["a", "b"])).count_all == 11


def test_a_page_with_diffs_fits_one_message(connection: Connection) -> None:
    for job_id in "ab":
        text = f"{job_id} " * 100_000
        completed(connection, job_id, [row(number, response=text) for number in range(20)])
    page = ask(connection, with_diffs=True)
    assert page.next_page_token
    assert page.ByteSize() < MAX_PAGE_BYTES + 600_000


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"job_ids": ["a"]}, "job_ids"),
        ({"job_ids": ["a", "a"]}, "job_ids"),
        ({"job_ids": list("abcde")}, "job_ids"),
        ({"filter": 7}, "filter"),
        ({"filter": Ask.FILTER_ONLY_RIGHT}, "only_job_id"),
        ({"filter": Ask.FILTER_ONLY_WRONG, "only_job_id": "z"}, "only_job_id"),
        ({"page_token": "x"}, "page_token"),
        ({"page_size": -1}, "page_size"),
        ({"conditions": pb.ItemConditions(verdicts=[9])}, "conditions.verdicts"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(
    connection: Connection, fields: dict[str, object], field: str
) -> None:
    pair(connection, "10", "01")
    with pytest.raises(InvalidRequestError) as raised:
        SideBySide().rows(connection, Ask(**({"job_ids": ["a", "b"]} | fields)))  # type: ignore[arg-type]
    assert raised.value.field == field


def test_a_hidden_job_is_not_found_though_its_rows_are_kept(connection: Connection) -> None:
    for job_id, owner in (("a", "ann"), ("b", "bob")):
        completed(connection, job_id, [row(0, 1.0)], EXACT, owner=owner)
    asked, request = SideBySide(), Ask(job_ids=["a", "b"])
    assert asked.rows(connection, request).count_all == 1
    with pytest.raises(NotFoundError, match="Benchmark job b not found"):
        asked.rows(connection, request, Visibility("ann"))
