"""Rows of several jobs are matched."""

from __future__ import annotations

import json

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.intake import writes
from services.results.storage.database import Connection
from tests.unit.results.builders import UNPARSED, batch, event, job, plan
from tests.unit.results.dataset_runs import EXACT, TOKEN_F1, calling, completed, row
from tests.unit.results.finished import finished, right_or_wrong, said, task
from tests.unit.results.side_by_side.rows import ask, items, pair
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Ask


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
        with pytest.raises(InvalidRequestError, match="no rows in common"):
            ask(connection, *jobs)


def test_a_task_without_rows_is_an_empty_page_where_other_tasks_have_some(connection: Connection) -> None:
    for job_id, tasks in (("a", ["t", "u"]), ("b", ["t", "u"])):
        made = job(job_id, *(plan(name, 2) for name in tasks))
        writes.store_events(connection, [event(f"0-{job_id}", made)])
        writes.store_items(connection, [batch(job_id, "t", [said(0, "yes")])])
    assert items(ask(connection, task="t")) == [0]
    assert not ask(connection, task="u").rows
    with pytest.raises(NotFoundError, match=r"None of the jobs has a task 'v'\. Their tasks: t, u"):
        ask(connection, task="v")


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


def test_tool_calls_agree_by_name_and_arguments_whatever_their_ids(connection: Connection) -> None:
    for job_id, cities in (("a", ("Rom", "Rom", "Rom")), ("b", ("Rom", "Lyon", ""))):
        answers = [
            calling(number, json.dumps({"city": city})) if city else row(number) for number, city in enumerate(cities)
        ]
        for one in answers:
            for call in one.tool_calls:
                call.id = f"{job_id} {call.id}"
        completed(connection, job_id, answers)
    page = ask(connection, with_diffs=True)
    assert [one.agree for one in page.rows] == [True, False, False]
    assert "".join(part.text for part in page.rows[0].diffs[1].parts) == 'weather({"city": "Rom"})'


def test_arguments_of_tool_calls_agree_by_their_json_value(connection: Connection) -> None:
    pairs = [
        ('{"a": 1, "b": {"x": [1, 2], "y": "\\u00fc"}}', '{"b":{"y":"ü","x":[1,2]},"a":1.0}', True),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": {}}', '{"a": []}', False),
        ('{"a": null}', "{}", False),
        ('{"a": 1', '{"a": 1', True),
        ('{"a": 1', '{"a": 2', False),
        ("", "", True),
    ]
    for job_id, place in (("a", 0), ("b", 1)):
        completed(connection, job_id, [calling(number, str(pair[place])) for number, pair in enumerate(pairs)])
    assert [one.agree for one in ask(connection).rows] == [pair[2] for pair in pairs]


def test_calls_agree_in_their_order_and_with_their_text(connection: Connection) -> None:
    completed(connection, "a", [calling(0, "{}", '{"a": 1}'), calling(1, "{}"), calling(2, "{}", response="x")])
    completed(connection, "b", [calling(0, '{"a": 1}', "{}"), calling(1, "{}", "{}"), calling(2, "{ }", response="x")])
    assert [one.agree for one in ask(connection).rows] == [False, False, True]
