"""Whose waiting call goes out next within an evaluator."""

from __future__ import annotations

from services.evaluator.pacing.fair_queue import Turns
from services.evaluator.pacing.shares import Flow

ADA_1, ADA_2, BOB = Flow("ada", "1"), Flow("ada", "2"), Flow("bob", "3")


def drained(turns: Turns[str]) -> str:
    return "".join(turns.take() for _ in range(len(turns)))


def test_users_take_turns_and_within_a_user_jobs_do() -> None:
    turns: Turns[str] = Turns()
    turns.add(ADA_1, "aaaa")
    turns.add(ADA_2, "AAAA")
    turns.add(BOB, "bbbb")
    assert drained(turns) == "abAbabAbaAaA"


def test_a_single_job_is_first_come_first_served() -> None:
    turns: Turns[str] = Turns()
    turns.add(ADA_1, "abc")
    turns.add(ADA_1, "de")
    assert drained(turns) == "abcde"


def test_a_call_that_is_put_back_is_the_first_of_its_job() -> None:
    turns: Turns[str] = Turns()
    turns.add(ADA_1, "abc")
    turns.put_back(ADA_1, turns.take())
    assert drained(turns) == "abc"


def test_a_call_that_is_put_back_as_the_last_lets_the_others_of_its_job_go_first() -> None:
    turns: Turns[str] = Turns()
    turns.add(ADA_1, "abc")
    turns.put_back(ADA_1, turns.take(), last=True)
    assert drained(turns) == "bca"


def test_a_flow_can_be_served_out_of_turn() -> None:
    turns: Turns[str] = Turns()
    turns.add(ADA_1, "ab")
    turns.add(BOB, "xy")
    assert turns.take(BOB) == "x"
    assert turns.waiting() == {ADA_1: 2, BOB: 1}


def test_dropped_calls_are_not_made() -> None:
    turns: Turns[str] = Turns()
    turns.add(ADA_1, "abcd")
    turns.add(BOB, "xy")
    turns.drop(ADA_1, lambda call: call in "bd")
    turns.drop(BOB, lambda call: True)
    turns.drop(ADA_2, lambda call: True)
    assert turns.waiting() == {ADA_1: 2}
    assert drained(turns) == "ac"
    assert not turns
