"""Small events told in several ways: what entailment and paraphrase are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.evaluator.demo.draw import Draw, T

PEOPLE = (
    "Anna", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Henry",
    "Irene", "Jonas", "Karim", "Lucia", "Martin", "Nadia", "Oscar", "Paula",
)  # fmt: skip
TOWNS = ("Lisbon", "Oslo", "Vienna", "Dublin", "Geneva", "Prague", "Turin", "Bergen")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
THINGS = ("bicycle", "violin", "lamp", "camera", "tent", "piano", "boat", "sewing machine", "typewriter", "telescope")


@dataclass(frozen=True)
class Exchange:
    """One event from both sides: `giver` gives, lends… `taker` receives, borrows… Forms are past tense."""

    give: str
    to: str
    take: str


EXCHANGES = (
    Exchange("sold", "to", "bought"),
    Exchange("lent", "to", "borrowed"),
    Exchange("handed", "to", "received"),
    Exchange("rented out", "to", "rented"),
)


@dataclass(frozen=True)
class Deed:
    """What one does to another, past tense and participle alike."""

    past: str
    participle: str


DEEDS = (
    Deed("invited", "invited"),
    Deed("thanked", "thanked"),
    Deed("interviewed", "interviewed"),
    Deed("recognised", "recognised"),
    Deed("overtook", "overtaken"),
    Deed("beat", "beaten"),
    Deed("photographed", "photographed"),
    Deed("replaced", "replaced"),
    Deed("hired", "hired"),
    Deed("forgave", "forgiven"),
)


@dataclass(frozen=True)
class Chore:
    """Something a person does, as base form, past tense and -ing form."""

    base: str
    past: str
    doing: str


CHORES = (
    Chore("repair the boiler", "repaired the boiler", "repairing the boiler"),
    Chore("lock the front door", "locked the front door", "locking the front door"),
    Chore("pay the electricity bill", "paid the electricity bill", "paying the electricity bill"),
    Chore("feed the neighbours' cat", "fed the neighbours' cat", "feeding the neighbours' cat"),
    Chore("finish the report", "finished the report", "finishing the report"),
    Chore("call the dentist", "called the dentist", "calling the dentist"),
    Chore("book a table", "booked a table", "booking a table"),
    Chore("clean the kitchen", "cleaned the kitchen", "cleaning the kitchen"),
    Chore("post the parcel", "posted the parcel", "posting the parcel"),
    Chore("paint the fence", "painted the fence", "painting the fence"),
    Chore("answer the letter", "answered the letter", "answering the letter"),
    Chore("collect the children", "collected the children", "collecting the children"),
)


def other_than(draw: Draw, options: Sequence[T], taken: T) -> T:
    """An option that is not `taken`."""
    return draw.one([option for option in options if option != taken])
