"""Bundled data: our own English text in GLUE's schema, generated when it is read, the same everywhere.

Each kind mixes sentences whose words give the label away with sentences where word order, negation or structure
decides, so that a bag of words does clearly better than chance and clearly worse than a reader.
"""

from __future__ import annotations

from collections.abc import Callable

from services.evaluator.demo import acceptability, entailment, paraphrase, sentiment
from services.evaluator.demo.draw import Draw

DATASET = "demo"
VALIDATION_ROWS = 400
TRAIN_ROWS = 2000

Row = dict[str, str | int]

_SEED = 2026
_ONES = 0.55
"""Share of rows with label 1: uneven, so that the majority class and a coin toss are two different floors."""
_EXAMPLES: dict[str, Callable[[Draw, int], dict[str, str]]] = {
    "sentiment": sentiment.example,
    "acceptability": acceptability.example,
    "entailment": entailment.example,
    "paraphrase": paraphrase.example,
}


def rows(config: str, train_rows: int = TRAIN_ROWS) -> dict[str, list[Row]]:
    """The splits "validation" and "train" of one kind, with no text in common.

    More `train_rows` lengthen the train split and leave its beginning and the validation split as they are.
    Raises KeyError for an unknown kind.
    """
    example = _EXAMPLES[config]
    draw = Draw(_SEED)
    seen: set[tuple[str, ...]] = set()
    drawn: list[Row] = []
    while len(drawn) < VALIDATION_ROWS + train_rows:
        label = int(draw.chance(_ONES))
        texts = example(draw, label)
        key = tuple(texts.values())
        if key in seen:
            continue
        seen.add(key)
        drawn.append({**texts, "label": label})
    validation, train = drawn[:VALIDATION_ROWS], drawn[VALIDATION_ROWS:]
    return {
        "validation": [{**row, "idx": idx} for idx, row in enumerate(validation)],
        "train": [{**row, "idx": idx} for idx, row in enumerate(train)],
    }
