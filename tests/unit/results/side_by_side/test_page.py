"""Rows of several jobs, row beside row."""

from __future__ import annotations

from datetime import datetime

import pytest
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from services.errors import InvalidRequestError, NotFoundError
from services.results.export import job_rows
from services.results.items.annotate import judge_row
from services.results.items.reads import EXCERPT_BYTES
from services.results.paging import MAX_PAGE_BYTES
from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from tests.unit.results.builders import ERROR
from tests.unit.results.dataset_runs import EXACT, TASK, completed, row, stored
from tests.unit.results.finished import finished, right_or_wrong, said, task
from tests.unit.results.side_by_side.rows import ask, items, pair, walk
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import token_pb2
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Ask


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


def test_counts_by_task_are_those_of_each_tasks_rows(connection: Connection) -> None:
    for job_id, patterns in (("a", ("1101", "011")), ("b", ("1000", "010"))):
        tasks = [task(name, right_or_wrong(pattern)) for name, pattern in zip(("t", "u"), patterns, strict=True)]
        finished(connection, job_id, *tasks)
    page = ask(connection, "a", "b", with_tasks=True)
    assert [(one.task, one.all_right, one.all_wrong, list(one.only_right)) for one in page.tasks] == [
        ("t", 1, 1, [2, 0]),
        ("u", 1, 1, [1, 0]),
    ]
    for one in page.tasks:
        alone = ask(connection, "a", "b", task=one.task)
        assert (alone.count_all_right, alone.count_all_wrong) == (one.all_right, one.all_wrong)
        assert [run.only_right for run in alone.runs] == list(one.only_right)
    assert not ask(connection, "a", "b").tasks


def test_counts_alone_are_those_beside_the_rows(connection: Connection) -> None:
    finished(connection, "a", task("t", right_or_wrong("1101")))
    finished(connection, "b", task("t", right_or_wrong("1000")))
    for asked in ({}, {"with_tasks": True}, {"filter": Ask.FILTER_DISAGREE}, {"order_field": "area"}):
        whole = ask(connection, "a", "b", **asked)
        assert len(whole.rows)
        del whole.rows[:]
        assert ask(connection, "a", "b", without_rows=True, **asked) == whole
    place = pb.RowPlace(job_id="a", task="t")
    with pytest.raises(InvalidRequestError, match="not both"):
        ask(connection, "a", "b", without_rows=True, open=place)


def test_an_opened_row_is_whole_when_asked_for_unless_it_is_too_long(connection: Connection) -> None:
    long = "word " * 1000
    completed(connection, "a", [row(0, 1.0, response=long + "end"), row(1, 1.0, response="x" * 600_000)], EXACT)
    completed(connection, "b", [row(0, 1.0, response=long), row(1, 1.0, response="y" * 600_000)], EXACT)
    place = pb.RowPlace(job_id="a", task=TASK)
    page = ask(connection, open=place, whole_opened=True, with_diffs=True)
    assert page.opened.whole
    assert [one.result.response for one in page.opened.items] == [long + "end", long]
    assert [one.result.response for row in page.rows for one in row.items] == [""] * 4
    cut = ask(connection, open=place, with_diffs=True)
    assert not cut.opened.whole
    assert [len(one.result.response) for one in cut.opened.items] == [EXCERPT_BYTES - 2] * 2
    assert cut.opened.diffs == page.opened.diffs
    place.item = 1
    page = ask(connection, open=place, whole_opened=True)
    assert not page.opened.whole
    assert [len(one.result.response) for one in page.opened.items] == [EXCERPT_BYTES - 2] * 2


def test_diffs_are_of_whole_responses_against_the_first_jobs(connection: Connection) -> None:
    long = "word " * 1000
    completed(connection, "a", [row(0, 1.0, response=long + "end")], EXACT)
    completed(connection, "b", [row(0, 1.0, response=long + "ending")], EXACT)
    (one,) = ask(connection, with_diffs=True).rows
    assert len(one.items[0].result.response.encode()) == 2048
    assert [(part.kind, part.text) for part in one.diffs[1].parts] == [(1, long), (2, "end"), (3, "ending")]
    assert not one.diffs[0].parts
    assert not ask(connection).rows[0].diffs


@pytest.mark.parametrize("done", [True, False])
def test_pages_walk_every_row_once_in_order(connection: Connection, done: bool) -> None:
    store = completed if done else stored
    for job_id in "ab":
        store(connection, job_id, [row(number, 1.0) for number in range(10)], EXACT)
    assert walk(connection, SideBySide()) == [f"candidate-{number}" for number in range(10)]


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
        ({"filter": 99}, "filter"),
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


def test_preferences_are_of_each_user_and_each_row_counts_once(connection: Connection) -> None:
    pair(connection, "++-+", "+--+")

    def judge(user: str, item: int, choice: pb.Preference.Choice, preferred: str = "", *jobs: str) -> None:
        row = pb.JudgeRowRequest(job_ids=jobs or ("b", "a"), task="t", item=item)
        row.choice, row.preferred_job_id = choice, preferred
        judge_row(connection, row, Identity(user, token_pb2.ROLE_USER), datetime(2026, 1, 1))

    judge("ann", 0, pb.Preference.CHOICE_BETTER, "a")
    judge("ann", 0, pb.Preference.CHOICE_BETTER, "b", "a", "b")
    judge("ann", 1, pb.Preference.CHOICE_TIE)
    judge("ann", 2, pb.Preference.CHOICE_ALL_BAD)
    judge("bob", 1, pb.Preference.CHOICE_BETTER, "a")
    judge("bob", 2, pb.Preference.CHOICE_BETTER, "a")
    judge("bob", 2, pb.Preference.CHOICE_UNSPECIFIED)
    judge("cyd", 3, pb.Preference.CHOICE_BETTER, "b")
    page = ask(connection, judge="ann")
    assert [row.preference.preferred_job_id for row in page.rows] == ["b", "", "", ""]
    assert (page.count_judged, page.count_not_judged) == (3, 1)
    counts = page.preferences
    assert (counts.rows, counts.judges, counts.ties, counts.all_bad, counts.split) == (4, 3, 0, 1, 1)
    assert [one.rows for one in counts.jobs] == [0, 2]
    low, high = proportion_confint(2, 2, method="wilson")
    assert (counts.jobs[1].ci95_low, counts.jobs[1].ci95_high) == pytest.approx((low, high))
    assert counts.p == pytest.approx(binomtest(0, 2).pvalue)
    assert items(ask(connection, judge="ann", filter=Ask.FILTER_NOT_JUDGED)) == [3]
    assert items(ask(connection, judge="bob", filter=Ask.FILTER_JUDGED)) == [1]
    table = job_rows.preferences(connection, "a", EVERYTHING)
    rows = [dict(zip((name for name, _ in table.columns), row, strict=True)) for some in table.batches for row in some]
    assert [(row["item"], row["author"], row["choice"], row["preferred"]) for row in rows] == [
        (0, "ann", "better", "b"),
        (1, "ann", "tie", ""),
        (2, "ann", "all_bad", ""),
        (1, "bob", "better", "a"),
        (3, "cyd", "better", "b"),
    ]
    with pytest.raises(InvalidRequestError, match="preferred_job_id"):
        judge("ann", 0, pb.Preference.CHOICE_TIE, "a")
    with pytest.raises(NotFoundError):
        judge("ann", 9, pb.Preference.CHOICE_TIE)


def test_a_row_opens_on_its_page_with_the_rows_around_it(connection: Connection) -> None:
    pair(connection, "+++++++", "-------")
    page = ask(connection, open=pb.RowPlace(job_id="a", task="t", item=3), page_size=2, with_diffs=True)
    assert (page.opened.item, page.opened_number, page.first_number, items(page)) == (3, 4, 3, [2, 3])
    around = page.previous, page.next, page.previous_page, page.next_page
    assert [place.item for place in around] == [2, 4, 0, 4]
    assert page.opened.items[0].result.response
    assert len(page.opened.diffs) == 2
    assert not any(stored.result.response for row in page.rows for stored in row.items)
    page = ask(connection, open=pb.RowPlace(job_id="a", task="t", item=99), page_size=2)
    assert (page.opened.item, page.HasField("previous"), page.next.item) == (0, False, 1)
    with pytest.raises(InvalidRequestError, match="open or page_token"):
        ask(connection, open=pb.RowPlace(job_id="a"), page_token="x")
