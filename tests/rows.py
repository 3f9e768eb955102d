"""Rows of our own in GLUE's schema: invented sentences under the Hub's column names and integer labels.

Every row of a split names another day, so that no two prompts are equal. The texts carry weak signals of their labels,
so that a classifier fitted on the train split is neither perfect nor blind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

DATASET = "nyu-mll/glue"
TRAIN_ROWS = 40
VALIDATION_ROWS = 32

Row = dict[str, str | int | float]
Make = Callable[[random.Random, int, int], Row]

_PEOPLE = ("Ada", "Boris", "Chiara", "Deniz", "Emeka", "Freya", "Goran", "Hana")
_THINGS = ("kettle", "ladder", "violin", "compass", "lantern", "bicycle", "telescope", "anvil")
_PLACES = ("harbour", "orchard", "attic", "workshop", "station", "greenhouse")
_PRAISE = ("bright", "tender", "witty", "gripping", "lovely")
_BLAME = ("dull", "clumsy", "hollow", "tedious", "muddled")


def write_mirror(root: Path, rows: Mapping[str, int] | None = None) -> Path:
    """Writes a data mirror and returns its root. `rows` gives validation rows by configuration; without it all nine.

    MNLI gets both validation splits.
    """
    for config, count in (rows or dict.fromkeys(_MAKERS, VALIDATION_ROWS)).items():
        splits = ("validation_matched", "validation_mismatched") if config == "mnli" else ("validation",)
        for split in ("train", *splits):
            write_split(root, config, split, TRAIN_ROWS if split == "train" else count)
    return root


def write_split(root: Path, config: str, split: str, count: int) -> None:
    chance = random.Random(f"{config}/{split}")
    make, labels = _MAKERS[config]
    lines = []
    for index in range(count):
        label = labels[chance.randrange(len(labels))] if index >= len(labels) else labels[index]
        # Every fifth text belongs to another label than it is given.
        seeming = label if chance.random() > 0.2 else labels[chance.randrange(len(labels))]
        lines.append(json.dumps(make(chance, index, seeming) | {"label": _value(config, label, chance), "idx": index}))
    folder = root / DATASET / config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")


def read_split(root: Path, config: str, split: str) -> list[Row]:
    """The rows of a mirror's split, ours or another's."""
    text = (root / DATASET / config / f"{split}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _value(config: str, label: int, chance: random.Random) -> int | float:
    # As the Hub keeps STS-B: 32-bit floats such as 3.799999952316284.
    return chance.choice((label + 0.0, label + 0.25, label + 0.799999952316284)) if config == "stsb" else label


def _scene(chance: random.Random, index: int) -> tuple[str, str, str]:
    return chance.choice(_PEOPLE), chance.choice(_THINGS), f"{chance.choice(_PLACES)} on day {index + 1}"


def _cola(chance: random.Random, index: int, label: int) -> Row:
    person, thing, place = _scene(chance, index)
    words = f"{person} left the {thing} in the {place}" if label else f"{person} the left {thing} the in {place}"
    return {"sentence": f"{words}{' quite' if not label else ''}."}


def _sst2(chance: random.Random, index: int, label: int) -> Row:
    person, thing, place = _scene(chance, index)
    word = chance.choice(_PRAISE if label else _BLAME)
    return {"sentence": f"a {word} film about {person} , a {thing} and the {place} "}


def _paraphrase(first: str, second: str) -> Make:
    def make(chance: random.Random, index: int, label: int) -> Row:
        person, thing, place = _scene(chance, index)
        other = f"The {thing} was bought by {person} near the {place} too."
        return {
            first: f"{person} bought the {thing} near the {place}.",
            second: other if label else f"{person} sold a {chance.choice(_THINGS)} far from here.",
        }

    return make


def _stsb(chance: random.Random, index: int, label: int) -> Row:
    person, thing, place = _scene(chance, index)
    words = f"{person} carries the {thing} to the {place} .".split()
    kept = words[: 2 * label + 1]
    return {"sentence1": " ".join(words), "sentence2": " ".join([*kept, *["nobody"] * (5 - label)])}


def _entailment(first: str, second: str, follows: int) -> Make:
    def make(chance: random.Random, index: int, label: int) -> Row:
        person, thing, place = _scene(chance, index)
        claim = f"{person} has a {thing}." if label == follows else f"{person} never had any {thing}."
        return {first: f"{person} repaired a {thing} of their own at the {place}.", second: claim}

    return make


def _mnli(chance: random.Random, index: int, label: int) -> Row:
    person, thing, place = _scene(chance, index)
    claims = (f"{person} was there.", f"The {thing} may be costly.", f"{person} stayed at home.")
    return {"premise": f"{person} took the {thing} to the {place}.", "hypothesis": claims[label]}


# Label order as on the Hub: entailment is 0 in RTE and QNLI, 1 in WNLI.
_MAKERS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "cola": (_cola, (0, 1)),
    "sst2": (_sst2, (0, 1)),
    "mrpc": (_paraphrase("sentence1", "sentence2"), (0, 1)),
    "qqp": (_paraphrase("question1", "question2"), (0, 1)),
    "stsb": (_stsb, (0, 1, 2, 3, 4)),
    "mnli": (_mnli, (0, 1, 2)),
    "qnli": (_entailment("question", "sentence", 0), (0, 1)),
    "rte": (_entailment("sentence1", "sentence2", 0), (0, 1)),
    "wnli": (_entailment("sentence1", "sentence2", 1), (0, 1)),
}
