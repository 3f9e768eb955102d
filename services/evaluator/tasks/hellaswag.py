"""HellaSwag (Zellers et al. 2019): how an everyday scene continues, on the validation split.

Log-likelihood mode follows lm_eval 0.4.13: the endings' texts are the continuations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice

SUITE = "hellaswag"
TITLE = "HellaSwag"
DESCRIPTION = "The most plausible of four endings to an everyday scene."

_BRACKETED = re.compile(r"\[.*?\]")


def _begun(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scene under its heading, and its endings, without the marks that the instructions among them carry."""
    scene = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
    return {
        "scene": _clean(scene),
        "endings": [_clean(ending) for ending in row["endings"]],
        "answer": int(row["label"]),
    }


def _clean(text: str) -> str:
    return _BRACKETED.sub("", text.strip().replace(" [title]", ". ")).replace("  ", " ")


TASKS: tuple[Definition, ...] = (
    MultipleChoice(
        suite=SUITE,
        task="hellaswag",
        title=TITLE,
        source=Source("Rowan/hellaswag", "default", "218ec52e09a7e7462a5400043bb9a69a41d06b76"),
        columns={
            **dict.fromkeys(("activity_label", "ctx_a", "ctx_b", "label"), pa.string()),
            "endings": pa.list_(pa.string()),
        },
        prepare=_begun,
        texts={"scene": "Scene"},
        instruction="Choose the ending that most plausibly continues the scene.",
        options="endings",
        by_text=True,
        metrics=(ACCURACY,),
        published_items=10042,
        context="{scene}",
    ),
)
