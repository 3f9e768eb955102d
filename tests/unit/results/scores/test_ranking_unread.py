"""Runs with many unread answers."""

from __future__ import annotations

from typing import Any

import pytest

from services.results.scores.ranking import add_offer, caution, unread
from services.results.storage.database import Connection
from tests.unit.results.boards.ranked import board, ranks
from tests.unit.results.builders import job, plan, run
from touchstone.v1 import job_pb2, metric_pb2, scoring_pb2


@pytest.mark.parametrize(
    ("cut", "unparsed", "caution"),
    [
        (2, 0, "2.0% of the answers were cut at a token limit"),
        (0, 6, "6.0% of the answers could not be read"),
        (1, 5, ""),
    ],
)
def test_cut_and_unreadable_answers_count_as_wrong_and_too_many_are_told_of(
    connection: Connection, cut: int, unparsed: int, caution: str
) -> None:
    right = 50
    wrong = 100 - right - cut - unparsed
    run(connection, job("j", plan("t", 100)), right=right, wrong=wrong, cut=cut, unparsed=unparsed, minute=1)
    run(connection, job("other", plan("t", 100), model="other"), right=10, wrong=90, minute=2)
    response = board(connection)
    assert ranks(response) == [(1, "j"), (2, "other")]
    entry = response.entries[0]
    assert (entry.caution, entry.not_ranked_reason) == (caution, "")
    assert [(one.task, one.unparsed, one.cut) for one in entry.unread] == (
        [("t", unparsed / 100, cut / 100)] if caution else []
    )
    assert [entry.score.mean, entry.score.bound_low] == pytest.approx([right / 100] * 2)
    assert entry.score.bound_high == pytest.approx((right + cut + unparsed) / 100)
    assert entry.score.answered_mean == pytest.approx(right / (right + wrong))
    assert not response.entries[1].score.HasField("answered_mean")


def test_unread_answers_are_judged_task_by_task_and_the_worst_are_named() -> None:
    large = unread(plan("large", 1), metric_pb2.OutcomeCounts(answered=40_000))
    small = [
        unread(
            plan(f"small{n}", 1), metric_pb2.OutcomeCounts(answered=94 - n, unparsed=6 + n, input_truncated=int(n == 2))
        )
        for n in range(5)
    ]
    assert large is None
    found = [one for one in small if one is not None]
    assert [one.title for one in found] == ["SMALL0", "SMALL1", "SMALL2", "SMALL3", "SMALL4"]
    assert caution(found[:1], 9) == "answers could not be read: SMALL0 6.0%"
    assert caution(found, 9) == (
        "answers could not be read: SMALL4 10.0%, SMALL3 9.0%, SMALL2 7.9%, and of 2 more tasks above 5%"
    )
    assert caution([], 9) == ""
    # A share of exactly the threshold is none too many.
    assert unread(plan("t", 1), metric_pb2.OutcomeCounts(answered=94, unparsed=5, output_truncated=1)) is None
    cut = unread(plan("t", 1), metric_pb2.OutcomeCounts(answered=90, unparsed=8, output_truncated=1, input_truncated=1))
    assert cut is not None
    assert caution([cut], 2) == "answers could not be read: T 8.0%; answers were cut at a token limit: T 2.0%"


def test_a_layer_is_offered_where_more_than_a_fifth_of_a_task_is_unread() -> None:
    def offer(*tasks: tuple[int, int, int], **job: Any) -> tuple[str, scoring_pb2.Reading]:
        plans = [plan(f"t{n}", 1) for n in range(len(tasks))]
        result = metric_pb2.JobResult()
        for planned, (unparsed, marked, lenient) in zip(plans, tasks, strict=True):
            counts = metric_pb2.OutcomeCounts(answered=1000 - unparsed, unparsed=unparsed)
            result.unread.extend(one for one in [unread(planned, counts, marked, lenient)] if one is not None)
        add_offer(job_pb2.Job(plan=plans, **job), result)
        return result.offer, result.offered_reading

    assert offer((310, 120, 260)) == (
        "The marked layer would read 120 of the 310 unread answers, the lenient one 260.",
        scoring_pb2.READING_LENIENT,
    )
    assert offer((310, 120, 120))[1] == scoring_pb2.READING_MARKED
    assert offer((310, 0, 260))[0] == "The lenient layer would read 260 of the 310 unread answers."
    nothing = ("", scoring_pb2.READING_UNSPECIFIED)
    assert offer((200, 120, 200)) == offer((310, 0, 0)) == offer((310, 1, 1), baseline=True) == nothing
    assert offer((300, 1, 2), (190, 100, 150), (400, 0, 4))[0] == (
        "T0: the marked layer would read 1 of the 300 unread answers, the lenient one 2. "
        "T2: the lenient layer would read 4 of the 400 unread answers."
    )
    assert offer(*[(300, 1, 2)] * 5)[0].endswith("Of 2 more tasks: the lenient layer would read 4 of 600.")
