"""Short reviews. Label 1: the writer is content on the whole. Negation and contrast reverse single words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.evaluator.demo.draw import Draw, a, sentence


@dataclass(frozen=True)
class Aspect:
    """Things a review may judge, with words that fit them."""

    nouns: tuple[str, ...]
    good: tuple[str, ...]
    bad: tuple[str, ...]

    def word(self, draw: Draw, label: int) -> str:
        return draw.one(self.good if label else self.bad)


_STORY = Aspect(
    ("plot", "story", "script", "ending", "dialogue", "opening chapter", "final scene"),
    ("gripping", "clever", "moving", "witty", "surprising", "convincing", "original", "touching"),
    ("thin", "clumsy", "predictable", "flat", "muddled", "tedious", "silly", "lifeless"),
)
_CAST = Aspect(
    ("lead actor", "young cast", "narrator", "main character", "voice acting"),
    ("charming", "convincing", "brilliant", "likeable", "memorable", "superb", "magnetic", "subtle"),
    ("wooden", "unconvincing", "lifeless", "irritating", "forgettable", "dull", "annoying", "weak"),
)
_PEOPLE = Aspect(
    ("staff", "manager", "guide", "waiter", "host", "driver", "receptionist", "crew"),
    ("friendly", "attentive", "charming", "patient", "cheerful", "skilful", "polite", "thoughtful"),
    ("rude", "careless", "cold", "grumpy", "bored", "unhelpful", "arrogant", "impatient"),
)
_FOOD = Aspect(
    ("soup", "pasta", "bread", "coffee", "dessert", "fish", "breakfast", "salad"),
    ("delicious", "tasty", "excellent", "superb", "perfect", "delightful", "wonderful", "lovely"),
    ("bland", "awful", "tasteless", "horrible", "mediocre", "forgettable", "unpleasant", "dreadful"),
)
_PLACE = Aspect(
    ("room", "lobby", "bathroom", "terrace", "garden", "dining hall", "waiting area", "cabin"),
    ("spotless", "bright", "cosy", "comfortable", "lovely", "elegant", "peaceful", "airy"),
    ("dirty", "noisy", "cramped", "gloomy", "damp", "shabby", "smelly", "freezing"),
)
_DEVICE = Aspect(
    ("screen", "battery", "keyboard", "camera", "speaker", "charger", "touchpad", "hinge"),
    ("reliable", "sturdy", "impressive", "solid", "excellent", "brilliant", "first-rate", "superb"),
    ("flimsy", "unreliable", "useless", "faulty", "fragile", "dreadful", "poor", "disappointing"),
)

_SUBJECTS: tuple[tuple[str, tuple[Aspect, ...]], ...] = (
    ("film", (_STORY, _CAST)),
    ("play", (_STORY, _CAST)),
    ("restaurant", (_FOOD, _PEOPLE, _PLACE)),
    ("hotel", (_PLACE, _PEOPLE, _FOOD)),
    ("laptop", (_DEVICE, _DEVICE)),
    ("ferry trip", (_PLACE, _FOOD, _PEOPLE)),
)
_WHOLE = Aspect(
    (),
    ("wonderful", "worth every penny", "a pleasure", "better than I had hoped", "easy to recommend"),
    ("disappointing", "a waste of money", "a chore", "worse than I had feared", "hard to recommend"),
)
_DEGREES = ("", "", "really ", "truly ")


def example(draw: Draw, label: int) -> dict[str, str]:
    """A row's text columns."""
    form: Callable[[Draw, int], str] = draw.kind(
        ((0.27, _plain), (0.23, _negated), (0.38, _contrast), (0.12, _verdict))
    )
    return {"sentence": sentence(form(draw, label))}


def _two(draw: Draw) -> tuple[str, tuple[Aspect, str], tuple[Aspect, str]]:
    """A subject and two different things about it."""
    subject, aspects = draw.one(_SUBJECTS)
    first, second = draw.two(aspects)
    while True:
        noun, other = draw.one(first.nouns), draw.one(second.nouns)
        if noun != other:
            return subject, (first, noun), (second, other)


def _plain(draw: Draw, label: int) -> str:
    _, (aspect, noun), (other, second) = _two(draw)
    word, degree = aspect.word(draw, label), draw.one(_DEGREES)
    return draw.one(
        (
            f"the {noun} was {degree}{word}",
            f"I thought the {noun} was {degree}{word}",
            f"we found the {noun} {degree}{word}",
            f"the {noun} seemed {degree}{word} to all of us",
            f"the {noun} was {word} and the {second} was {other.word(draw, label)}",
        )
    )


def _negated(draw: Draw, label: int) -> str:
    _, (aspect, noun), _ = _two(draw)
    word = aspect.word(draw, 1 - label)
    return draw.one(
        (
            f"the {noun} was not {word} at all",
            f"the {noun} was never {word}",
            f"I would not call the {noun} {word}",
            f"nobody could say that the {noun} was {word}",
            f"the {noun} was anything but {word}",
            f"the {noun} was far from {word}",
            f"there was nothing {word} about the {noun}",
        )
    )


def _contrast(draw: Draw, label: int) -> str:
    """Two judgements; the main clause, or what follows "but", is the writer's."""
    _, (aspect, noun), (other, second) = _two(draw)
    against, final = aspect.word(draw, 1 - label), other.word(draw, label)
    return draw.one(
        (
            f"although the {noun} was {against}, the {second} was {final}",
            f"the {second} was {final}, although the {noun} was {against}",
            f"the {noun} was {against}, but the {second} was {final}",
            f"even though the {noun} was {against}, we found the {second} {final}",
            f"despite the {against} {noun}, the {second} was {final}",
            f"the {second} was {final} despite the {against} {noun}",
            f"I expected {a(other.word(draw, 1 - label))} {second} and got {a(final)} one",
        )
    )


def _verdict(draw: Draw, label: int) -> str:
    """Details on one side, the verdict on the other."""
    subject, (aspect, noun), (other, second) = _two(draw)
    whole = _WHOLE.word(draw, label)
    against, again = aspect.word(draw, 1 - label), other.word(draw, 1 - label)
    return draw.one(
        (
            f"the {noun} was {against} and the {second} was {again}, but the {subject} as a whole was {whole}",
            f"yes, the {noun} was {against}, yet overall the {subject} was {whole}",
            f"friends had warned me about the {against} {noun}, but the {subject} was {whole}"
            if label
            else f"friends had praised the {against} {noun}, but the {subject} was {whole}",
        )
    )
