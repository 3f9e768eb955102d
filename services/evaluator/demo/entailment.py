"""A text and a hypothesis. Label 0: the hypothesis follows; 1: it does not."""

from __future__ import annotations

from collections.abc import Callable

from services.evaluator.demo.draw import Draw, a, sentence
from services.evaluator.demo.scenes import CHORES, DAYS, DEEDS, EXCHANGES, PEOPLE, THINGS, TOWNS, other_than

Pair = tuple[str, str]

# Whether the thing was done: "managed to" means yes, "hoped to" leaves it open or means no.
_DONE = ("managed to", "remembered to", "did not forget to", "was able at last to", "took the time to")
_NOT_DONE = ("hoped to", "forgot to", "promised to", "refused to", "did not manage to", "did not remember to")
_GROUPS = (
    ("students", "passed the exam"),
    ("visitors", "signed the petition"),
    ("runners", "reached the finish"),
    ("houses", "were sold last year"),
    ("trains", "arrived on time"),
    ("members", "voted for the plan"),
)
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine")
_COMPARED = (("older", "younger"), ("taller", "shorter"), ("faster", "slower"), ("richer", "poorer"))


def example(draw: Draw, label: int) -> dict[str, str]:
    """A row's text columns."""
    form: Callable[[Draw, bool], Pair] = draw.kind(_FORMS)
    text, hypothesis = form(draw, label == 0)
    return {"sentence1": sentence(text), "sentence2": sentence(hypothesis)}


def _exchange(draw: Draw, follows: bool) -> Pair:
    giver, taker = draw.two(PEOPLE)
    deal, thing, town, day = draw.one(EXCHANGES), a(draw.one(THINGS)), draw.one(TOWNS), draw.one(DAYS)
    text = f"On {day} {giver} {deal.give} {thing} {deal.to} {taker} in {town}"
    if not follows:
        giver, taker = taker, giver
    return text, draw.one(
        (
            f"{taker} {deal.take} {thing} from {giver}",
            f"{giver} {deal.give} {thing} {deal.to} {taker}",
            f"it was {giver} who {deal.give} {thing} {deal.to} {taker} on {day}",
        )
    )


def _details(draw: Draw, follows: bool) -> Pair:
    """The hypothesis leaves a detail out, or changes one."""
    who, chore, town, day = draw.one(PEOPLE), draw.one(CHORES), draw.one(TOWNS), draw.one(DAYS)
    companion = other_than(draw, PEOPLE, who)
    text = draw.one(
        (
            f"{who} {chore.past} on {day}, before leaving for {town} with {companion}",
            f"on {day} {who} {chore.past} and then travelled to {town} with {companion}",
        )
    )
    if follows:
        return text, draw.one(
            (f"{who} {chore.past}", f"{who} went to {town}", f"{companion} went to {town} with {who}")
        )
    return text, draw.one(
        (
            f"{who} {chore.past} in {town}",
            f"{companion} {chore.past}",
            f"{who} went to {town} alone",
            f"{who} went to {other_than(draw, TOWNS, town)}",
        )
    )


def _attempt(draw: Draw, follows: bool) -> Pair:
    who, chore, day = draw.one(PEOPLE), draw.one(CHORES), draw.one(DAYS)
    attitude = draw.one(_DONE if follows else _NOT_DONE)
    return f"{who} {attitude} {chore.base} on {day}", f"{who} {chore.past}"


def _passive(draw: Draw, follows: bool) -> Pair:
    who, whom = draw.two(PEOPLE)
    deed, town, day = draw.one(DEEDS), draw.one(TOWNS), draw.one(DAYS)
    text = draw.one(
        (f"{who} {deed.past} {whom} in {town}", f"on {day} {who} {deed.past} {whom}", f"{who} {deed.past} {whom} twice")
    )
    if not follows:
        who, whom = whom, who
    return text, draw.one((f"{whom} was {deed.participle} by {who}", f"{who} {deed.past} {whom}"))


def _quantity(draw: Draw, follows: bool) -> Pair:
    what, did = draw.one(_GROUPS)
    low = int(draw.one("01234"))
    few, many = _NUMBERS[low], _NUMBERS[low + 1 + int(draw.one("012"))]
    text = f"{few} of the {many} {what} {did}"
    if follows:
        return text, draw.one(
            (f"not all of the {what} {did}", f"some of the {what} {did}", f"at least {few} {what} {did}")
        )
    return text, draw.one((f"all of the {what} {did}", f"none of the {what} {did}", f"at least {many} {what} {did}"))


def _comparison(draw: Draw, follows: bool) -> Pair:
    first, second = draw.two(PEOPLE)
    third = draw.one([person for person in PEOPLE if person not in (first, second)])
    more, less = draw.one(_COMPARED)
    text = f"{first} is {more} than {second}, and {second} is {more} than {third}"
    low, high = draw.one(((first, second), (second, third), (first, third)))
    if not follows:
        low, high = high, low
    return text, draw.one((f"{low} is {more} than {high}", f"{high} is {less} than {low}"))


_FORMS: tuple[tuple[float, Callable[[Draw, bool], Pair]], ...] = (
    (0.17, _exchange),
    (0.20, _details),
    (0.18, _attempt),
    (0.15, _passive),
    (0.15, _quantity),
    (0.15, _comparison),
)
