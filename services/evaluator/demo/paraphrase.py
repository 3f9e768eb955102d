"""Two sentences. Label 1: they say the same thing."""

from __future__ import annotations

from collections.abc import Callable

from services.evaluator.demo.draw import Draw, a, sentence
from services.evaluator.demo.scenes import CHORES, DAYS, DEEDS, EXCHANGES, PEOPLE, THINGS, TOWNS, other_than

Pair = tuple[str, str]

_BODIES = ("the council", "the committee", "the school board", "the ministry", "the union", "the port authority")
# (a way to say it, another way, something similar but different)
_DECISIONS = (
    ("approved", "gave the green light to", "discussed"),
    ("rejected", "turned down", "delayed"),
    ("postponed", "put off", "cancelled"),
    ("welcomed", "was pleased with", "criticised"),
    ("examined", "looked into", "ignored"),
    ("paid for", "financed", "asked for"),
)
_PLANS = (
    "the new bridge",
    "the tram line",
    "the library",
    "the budget",
    "the swimming pool",
    "the night bus",
    "the merger",
)
_AMOUNTS = (
    ("twelve", "a dozen", "twenty"),
    ("half of the", "fifty per cent of the", "a third of the"),
    ("fewer than ten", "no more than nine", "at least ten"),
    ("almost all", "nearly all", "hardly any"),
    ("all of the", "all the", "most of the"),
)
_FOUND = (
    ("eggs", "were broken"),
    ("tickets", "were sold on the first day"),
    ("flats", "have a balcony"),
    ("ships", "stayed in the harbour"),
    ("letters", "arrived too late"),
)
_COMPARED = (("older", "younger"), ("heavier", "lighter"), ("more expensive", "cheaper"), ("larger", "smaller"))


def example(draw: Draw, label: int) -> dict[str, str]:
    """A row's text columns."""
    form: Callable[[Draw, bool], Pair] = draw.kind(_FORMS)
    one, other = form(draw, label == 1)
    if draw.chance(0.5):
        one, other = other, one
    return {"sentence1": sentence(one), "sentence2": sentence(other)}


def _passive(draw: Draw, same: bool) -> Pair:
    who, whom = draw.two(PEOPLE)
    deed, town = draw.one(DEEDS), draw.one(TOWNS)
    one = f"{who} {deed.past} {whom} in {town}"
    if not same:
        who, whom = whom, who
    return one, draw.one(
        (f"in {town}, {whom} was {deed.participle} by {who}", f"it was {who} who {deed.past} {whom} in {town}")
    )


def _sequence(draw: Draw, same: bool) -> Pair:
    who, (first, second) = draw.one(PEOPLE), draw.two(CHORES)
    one = f"{who} {first.past} before {second.doing}"
    if not same:
        first, second = second, first
    return one, draw.one((f"{who} {second.past} after {first.doing}", f"after {first.doing}, {who} {second.past}"))


def _decision(draw: Draw, same: bool) -> Pair:
    body, plan, day = draw.one(_BODIES), draw.one(_PLANS), draw.one(DAYS)
    plain, alike, different = draw.one(_DECISIONS)
    one = f"{body} {plain} {plan} on {day}"
    if same:
        return one, draw.one((f"on {day}, {body} {alike} {plan}", f"{body} {alike} {plan} on {day}"))
    return one, draw.one(
        (
            f"{body} {different} {plan} on {day}",
            f"on {other_than(draw, DAYS, day)}, {body} {alike} {plan}",
            f"on {day}, {body} {alike} {other_than(draw, _PLANS, plan)}",
        )
    )


def _exchange(draw: Draw, same: bool) -> Pair:
    giver, taker = draw.two(PEOPLE)
    deal, thing, day = draw.one(EXCHANGES), a(draw.one(THINGS)), draw.one(DAYS)
    one = f"{giver} {deal.give} {thing} {deal.to} {taker} on {day}"
    if not same:
        giver, taker = taker, giver
    return one, draw.one(
        (f"on {day}, {taker} {deal.take} {thing} from {giver}", f"{taker} {deal.take} {thing} from {giver} on {day}")
    )


def _amount(draw: Draw, same: bool) -> Pair:
    number, alike, different = draw.one(_AMOUNTS)
    what, did = draw.one(_FOUND)
    town = draw.one(TOWNS)
    return f"in {town}, {number} {what} {did}", f"{alike if same else different} {what} {did} in {town}"


def _comparison(draw: Draw, same: bool) -> Pair:
    first, second = (f"the {thing}" for thing in draw.two(THINGS))
    more, less = draw.one(_COMPARED)
    one = f"{first} is {more} than {second}"
    if same:
        return one, f"{second} is {less} than {first}"
    return one, draw.one((f"{second} is {more} than {first}", f"{first} is {less} than {second}"))


_FORMS: tuple[tuple[float, Callable[[Draw, bool], Pair]], ...] = (
    (0.20, _passive),
    (0.19, _sequence),
    (0.22, _decision),
    (0.14, _exchange),
    (0.13, _amount),
    (0.12, _comparison),
)
