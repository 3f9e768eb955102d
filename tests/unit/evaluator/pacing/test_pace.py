"""How an endpoint's refusals slow this process down, and its answers make it faster again."""

from __future__ import annotations

from services.evaluator.pacing.pace import Pace, Paces, Rate


def test_a_refusal_halves_the_calls_at_once_down_to_one() -> None:
    pace = Pace(9)
    seen = []
    for second in range(5):
        pace.refused(second, second + 0.5)
        seen.append(pace.slots)
    assert seen == [4, 2, 1, 1, 1]


def test_calls_that_were_under_way_at_a_halving_do_not_halve_again() -> None:
    pace = Pace(16)
    pace.refused(10.0, 10.5)
    for sent in (10.1, 10.2, 10.4):
        pace.refused(sent, 10.6)
    assert pace.slots == 8
    pace.refused(10.6, 11)
    assert pace.slots == 4


def test_each_window_of_successes_allows_one_call_more_up_to_the_configured_number() -> None:
    pace = Pace(8)
    pace.refused(0, 1)
    grown = []
    for _ in range(4 + 5 + 6 + 7 + 50):
        pace.succeeded()
        grown.append(pace.slots)
    assert [grown.index(slots) + 1 for slots in (5, 6, 7, 8)] == [4, 9, 15, 22]
    assert grown[-1] == 8


def test_a_refusal_begins_the_window_anew() -> None:
    pace = Pace(8)
    pace.refused(0, 1)
    for _ in range(3):
        pace.succeeded()
    pace.refused(0.5, 1.5)
    pace.succeeded()
    assert pace.slots == 4


def test_the_longest_pause_that_was_asked_for_holds() -> None:
    pace = Pace(8)
    pace.pause(5, now=100)
    pace.pause(1, now=101)
    assert pace.limited_s(102) == 3
    assert pace.limited_s(106) == 0


def test_the_detail_tells_the_pause_and_the_calls_at_once() -> None:
    pace = Pace(8)
    assert pace.detail(0) == ""
    pace.pause(5, now=100)
    assert pace.detail(100) == "rate limit, next call in 5 s"
    pace.refused(100, 100)
    assert pace.detail(101) == "rate limit, next call in 4 s, then 4 of 8 calls at once"
    assert pace.detail(110) == "rate limit, 4 of 8 calls at once"


def test_a_refused_model_waits_and_no_other() -> None:
    paces = Paces(8)
    paces.refused("bad", 0.0, 1.0, whole=False)
    paces.pause("bad", 5.0, 1.0, whole=False)
    assert (paces.room("bad", 0, 2.0), paces.room("good", 0, 2.0), paces.room("good", 5, 2.0)) == (0, 8, 3)
    assert (paces.room("bad", 0, 7.0), paces.room("bad", 3, 7.0), paces.room("bad", 6, 7.0)) == (4, 1, 0)
    assert paces.whole.slots == 8
    assert paces.detail(2.0) == "bad: rate limit, next call in 4 s, then 4 of 8 calls at once"


def test_what_is_too_much_for_the_endpoint_slows_all_models() -> None:
    paces = Paces(8)
    paces.refused("a", 0.0, 1.0, whole=True)
    paces.pause("a", 5.0, 1.0, whole=True)
    assert not paces.slowed
    assert (paces.whole.slots, paces.whole.limited_s(2.0)) == (4, 4.0)
    assert paces.detail(2.0) == "rate limit, next call in 4 s, then 4 of 8 calls at once"


def test_a_model_that_answers_again_or_is_no_longer_called_is_not_slowed() -> None:
    paces = Paces(2)
    paces.refused("a", 0.0, 1.0, whole=False)
    paces.succeeded("a", 2.0)
    assert not paces.slowed
    paces.refused("b", 3.0, 4.0, whole=False)
    assert paces.detail(60.0)
    assert paces.detail(65.0) == ""
    assert not paces.slowed


def test_a_refused_key_is_told_with_its_model_until_the_model_answers_or_for_an_hour() -> None:
    paces = Paces(2)
    paces.denied("a", "e refused the key.", 0.0)
    assert paces.detail(3600.0) == "a: e refused the key."
    assert not paces.slowed, "no pause: the job of the model has failed"
    assert paces.room("a", 0, 1.0) == 2
    paces.succeeded("b", 1.0)
    assert paces.detail(1.0)
    paces.succeeded("a", 1.0)
    assert paces.detail(1.0) == ""
    for place, model in enumerate("abcdea"):
        paces.denied(model, "no.", float(place))
    assert paces.detail(6.0) == "a: no.; e: no.; d: no.; the key is also refused for 2 more models"
    assert paces.detail(3603.5) == "a: no.; e: no."
    assert paces.detail(3606.0) == ""


def test_the_rate_is_that_of_the_last_half_second() -> None:
    rate = Rate()
    for event in range(200):
        rate.count(event / 100)
    assert 95 <= rate.per_second <= 105
    for event in range(20):
        rate.count(2 + event / 10)
    assert 9 <= rate.per_second <= 12


def test_nothing_is_known_at_the_beginning_and_after_a_pause() -> None:
    rate = Rate()
    rate.count(100)
    assert rate.per_second == 0
    for event in range(200):
        rate.count(100 + event / 100)
    assert rate.per_second > 0
    rate.count(200)
    assert rate.per_second == 0
