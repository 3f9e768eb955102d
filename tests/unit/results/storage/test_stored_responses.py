"""Stored answers that stand in for calls."""

from __future__ import annotations

import hashlib

import pytest

from services.errors import InvalidRequestError
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.storage.stored_responses import MOST, find_responses
from services.results.visibility import Visibility
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, event, job, plan
from touchstone.v1 import item_result_pb2
from touchstone.v1.results_service_pb2 import FindResponsesRequest

REFUSED, CUT_PROMPT = item_result_pb2.OUTCOME_REFUSED, item_result_pb2.OUTCOME_INPUT_TRUNCATED


def identity(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def store(connection: Connection, job_id: str, *results: item_result_pb2.ItemResult, task: str = "t") -> None:
    writes.store_items(connection, [batch(job_id, task, results)])


def by_identity(connection: Connection, *texts: str) -> list[item_result_pb2.ItemResult]:
    request = FindResponsesRequest(identities=[identity(text) for text in texts])
    return list(find_responses(connection, request).results)


def by_position(connection: Connection, *positions: int, job_id: str = "j") -> list[item_result_pb2.ItemResult]:
    return list(find_responses(connection, FindResponsesRequest(job_id=job_id, task="t", positions=positions)).results)


def test_answers_come_whole_but_for_their_prompts(connection: Connection) -> None:
    sent = answer(3, identity=identity("a"), reasoning="because", parameters='{"seed":1}', cost_usd=0.01, position=7)
    sent.continuations.add(text=" A", loglikelihood=-0.25, tokens=1, greedy=True)
    store(connection, "j", sent)
    sent.prompt = ""
    assert by_position(connection, 7) == [sent]
    sent.source_job = "j"
    assert by_identity(connection, "a") == [sent]


def test_every_final_outcome_is_found_and_no_infrastructure_error(connection: Connection) -> None:
    outcomes = (UNPARSED, CUT, REFUSED, CUT_PROMPT, ERROR)
    results = [answer(i, outcome=o, identity=identity(str(i))) for i, o in enumerate(outcomes)]
    store(connection, "j", *results, answer(5, identity=identity("5")))
    assert {r.item for r in by_identity(connection, *map(str, range(6)))} == {0, 1, 2, 3, 5}
    assert {r.item for r in by_position(connection, *range(6))} == {0, 1, 2, 3, 5}


def test_of_several_answers_with_one_identity_the_newest_is_given(connection: Connection) -> None:
    for number, job_id in enumerate(("first", "second", "third")):
        store(connection, job_id, answer(0, f"said {number}", identity=identity("same")))
    store(connection, "failed", answer(0, outcome=ERROR, identity=identity("same")))
    assert [r.prediction for r in by_identity(connection, "same", "other")] == ["said 2"]


def test_where_reads_are_closed_only_the_owners_own_answers_stand_in(connection: Connection) -> None:
    for owner in ("ann", "bob"):
        writes.store_events(connection, [event(f"1{owner}", job(f"of {owner}", plan("t", 1), owner=owner))])
        store(connection, f"of {owner}", answer(0, owner, identity=identity("same")))
    request = FindResponsesRequest(identities=[identity("same")], owner="ann")
    assert [r.prediction for r in find_responses(connection, request, Visibility("ann")).results] == ["ann"]
    assert [r.prediction for r in find_responses(connection, request).results] == ["bob"]


def test_positions_are_those_of_one_job_and_one_task(connection: Connection) -> None:
    store(connection, "j", answer(0), answer(1))
    store(connection, "other", answer(2))
    store(connection, "j", answer(1, "of another task"), task="u")
    assert [r.prediction for r in by_position(connection, 1, 2)] == ["yes"]
    assert by_position(connection, 0, job_id="nobody") == []


def test_answers_without_an_identity_match_none(connection: Connection) -> None:
    store(connection, "j", answer(0), answer(1, identity="no identity at all"))
    assert by_identity(connection, "a") == []
    assert by_position(connection, 1)[0].identity == ""


def test_what_does_not_fit_one_message_is_left_for_another_request(connection: Connection) -> None:
    results = [answer(i) for i in range(30)]
    for result in results:
        result.response = "x" * 256_000
    store(connection, "j", *results)
    left, asked = set(range(30)), 0
    while left:
        found = by_position(connection, *left)
        assert 0 < sum(r.ByteSize() for r in found) < 4_000_000
        left -= {r.position for r in found}
        asked += 1
    assert asked == 3


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (FindResponsesRequest(job_id="j", task="t", identities=["0" * 32]), "not for both"),
        (FindResponsesRequest(job_id="j", positions=[1]), "Set task"),
        (FindResponsesRequest(job_id="j", task="t", positions=range(MOST + 1)), "1,001 positions"),
        (FindResponsesRequest(identities=["0" * 32] * (MOST + 1)), "1,001 identities"),
        (FindResponsesRequest(identities=["A" * 32]), "32 hexadecimal digits"),
    ],
)
def test_a_request_that_asks_wrongly_is_refused(
    connection: Connection, request_: FindResponsesRequest, reason: str
) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        find_responses(connection, request_)
