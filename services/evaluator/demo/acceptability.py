"""Single sentences. Label 1: acceptable English. The others break one rule: word order, agreement, verb forms,
reflexives, transitivity or questions. Each construction comes in both versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.evaluator.demo.draw import Draw, sentence


@dataclass(frozen=True)
class Verb:
    """A verb's forms. `objects` is empty for verbs that take none; `strict` verbs always take one."""

    base: str
    third: str
    past: str
    participle: str
    objects: tuple[str, ...] = ()
    strict: bool = False


_TRANSITIVE = (
    Verb("water", "waters", "watered", "watered", ("roses", "tomatoes", "window boxes")),
    Verb("repair", "repairs", "repaired", "repaired", ("roof", "old clock", "bicycle", "garden gate"), strict=True),
    Verb("carry", "carries", "carried", "carried", ("boxes", "heavy suitcase", "chairs"), strict=True),
    Verb("find", "finds", "found", "found", ("missing keys", "wallet", "hidden letters"), strict=True),
    Verb("take", "takes", "took", "taken", ("train tickets", "last umbrella", "maps"), strict=True),
    Verb("break", "breaks", "broke", "broken", ("blue vase", "kitchen window", "plates")),
    Verb("choose", "chooses", "chose", "chosen", ("curtains", "wedding cake", "new logo")),
    Verb("steal", "steals", "stole", "stolen", ("silver spoons", "painting", "apples")),
    Verb("bring", "brings", "brought", "brought", ("sandwiches", "birthday present", "tools"), strict=True),
    Verb("hide", "hides", "hid", "hidden", ("chocolate", "old photographs", "spare key")),
)
_INTRANSITIVE = (
    Verb("arrive", "arrives", "arrived", "arrived"),
    Verb("sleep", "sleeps", "slept", "slept"),
    Verb("laugh", "laughs", "laughed", "laughed"),
    Verb("disappear", "disappears", "disappeared", "disappeared"),
    Verb("complain", "complains", "complained", "complained"),
    Verb("hesitate", "hesitates", "hesitated", "hesitated"),
)
_REFLEXIVE = ("blamed", "admired", "prepared", "surprised", "hurt", "defended", "introduced", "convinced")
_SPEECH = ("said", "believed", "claimed", "hoped", "noticed", "remembered")

# (phrase, reflexive pronoun)
_SINGULAR = (
    ("the gardener's wife", "herself"),
    ("my sister", "herself"),
    ("the old queen", "herself"),
    ("her grandmother", "herself"),
    ("the landlord's son", "himself"),
    ("my uncle", "himself"),
    ("the young king", "himself"),
    ("his grandfather", "himself"),
)
_PLURAL = (
    ("the gardeners", "themselves"),
    ("two students", "themselves"),
    ("my neighbours", "themselves"),
    ("the sailors", "themselves"),
    ("both sisters", "themselves"),
    ("the three brothers", "themselves"),
)
# Between subject and verb, so that the verb's neighbour has the other number.
_WITH_PLURAL = ("with the two dogs", "next to the twins", "behind the boxes", "in the muddy boots")
_WITH_SINGULAR = ("with the large dog", "next to the captain", "behind the counter", "in the red coat")
_WHEN = ("yesterday", "last week", "before lunch", "on Sunday", "after the storm", "in the evening")
_OFTEN = ("every morning", "on Mondays", "all the time", "in winter", "twice a year")


def example(draw: Draw, label: int) -> dict[str, str]:
    """A row's text columns."""
    form: Callable[[Draw, bool], str] = draw.kind(_FORMS)
    return {"sentence": sentence(form(draw, bool(label)))}


def _anyone(draw: Draw) -> str:
    return draw.one(_SINGULAR + _PLURAL)[0]


def _order(draw: Draw, right: bool) -> str:
    who, verb, when = _anyone(draw), draw.one(_TRANSITIVE), draw.one(_WHEN)
    what = f"the {draw.one(verb.objects)}"
    if right:
        return draw.one((f"{who} {verb.past} {what} {when}", f"{when} {who} {verb.past} {what}"))
    return draw.one((f"{who} {what} {verb.past} {when}", f"{when} {verb.past} {who} {what}"))


def _agreement(draw: Draw, right: bool) -> str:
    singular = draw.chance(0.5)
    who = draw.one(_SINGULAR if singular else _PLURAL)[0]
    if draw.chance(0.7):
        who += f" {draw.one(_WITH_PLURAL if singular else _WITH_SINGULAR)}"
    if draw.chance(0.5):
        verb = draw.one(_TRANSITIVE)
        form = verb.third if singular == right else verb.base
        return f"{who} {form} the {draw.one(verb.objects)} {draw.one(_OFTEN)}"
    verb = draw.one(_INTRANSITIVE)
    return f"{who} {verb.third if singular == right else verb.base} {draw.one(_OFTEN)}"


def _reflexive(draw: Draw, right: bool) -> str:
    who, own = draw.one(_SINGULAR + _PLURAL)
    if not right:
        own = draw.one([word for word in ("himself", "herself", "themselves") if word != own])
    return f"{who} {draw.one(_REFLEXIVE)} {own} {draw.one(_WHEN)}"


def _verb_form(draw: Draw, right: bool) -> str:
    who, verb, when = _anyone(draw), draw.one(_TRANSITIVE), draw.one(_WHEN)
    what = f"the {draw.one(verb.objects)}"
    auxiliary, good, bad = draw.one(
        (
            ("did not", verb.base, verb.past),
            ("will", verb.base, verb.participle),
            ("had", verb.participle, verb.base),
            ("wanted to", verb.base, verb.past),
        )
    )
    return f"{who} {auxiliary} {good if right else bad} {what}" + (f" {when}" if auxiliary != "will" else "")


def _transitivity(draw: Draw, right: bool) -> str:
    who, when = _anyone(draw), draw.one(_WHEN)
    verb, other = draw.one([verb for verb in _TRANSITIVE if verb.strict]), draw.one(_INTRANSITIVE)
    what = f"the {draw.one(verb.objects)}"
    if draw.chance(0.5):
        return f"{who} {verb.past} {what} {when}" if right else f"{who} {verb.past} {when}"
    return f"{who} {other.past} {when}" if right else f"{who} {other.past} {what} {when}"


def _question(draw: Draw, right: bool) -> str:
    """A question for an object that the sentence must then not name."""
    who, verb, when = _anyone(draw), draw.one(_TRANSITIVE), draw.one(_WHEN)
    what = f"the {draw.one(verb.objects)}"
    if draw.chance(0.5):
        return f"what did {who} {verb.base} {when}?" if right else f"what did {who} {verb.base} {what} {when}?"
    return f"did {who} {verb.base} {what} {when}?" if right else f"did {verb.base} {who} {what} {when}?"


def _clause(draw: Draw, right: bool) -> str:
    """A subordinate clause, whole or without its subject or its verb."""
    who, verb, when = _anyone(draw), draw.one(_TRANSITIVE), draw.one(_WHEN)
    what, other = f"the {draw.one(verb.objects)}", _anyone(draw)
    start = f"{who} {draw.one(_SPEECH)} that"
    if right:
        return f"{start} {other} had {verb.participle} {what} {when}"
    return draw.one((f"{start} had {verb.participle} {what} {when}", f"{start} {other} {what} had {when}"))


_FORMS: tuple[tuple[float, Callable[[Draw, bool], str]], ...] = (
    (0.13, _order),
    (0.23, _agreement),
    (0.22, _reflexive),
    (0.12, _verb_form),
    (0.13, _transitivity),
    (0.09, _question),
    (0.08, _clause),
)
