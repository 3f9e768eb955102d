"""The AI2 Reasoning Challenge (Clark et al. 2018): science questions for schools, on the test splits.

Log-likelihood mode follows lm_eval 0.4.13: the options' texts are the continuations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice
from touchstone.v1.suite_pb2 import Weighting

SUITE = "arc"
TITLE = "ARC"
DESCRIPTION = "Science questions for schools: an easy set and a challenging set."
# The authors report the two separately.
WEIGHTING = Weighting.WEIGHTING_TASKS

_REVISION = "210d026faf9955653af8916fad021475a3f00453"


def _placed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options' texts, and the index of the right one: the data names it by a label, "A" or "1"."""
    options = row["choices"]
    return {
        "question": row["question"],
        "options": options["text"],
        "answer": options["label"].index(row["answerKey"]),
    }


def _task(name: str, title: str, config: str, items: int) -> MultipleChoice:
    return MultipleChoice(
        suite=SUITE,
        task=name,
        title=title,
        source=Source("allenai/ai2_arc", config, _REVISION),
        split="test",
        columns={
            "question": pa.string(),
            "choices": pa.struct([("text", pa.list_(pa.string())), ("label", pa.list_(pa.string()))]),
            "answerKey": pa.string(),
        },
        prepare=_placed,
        texts={"question": "Question"},
        instruction="Choose the right answer.",
        options="options",
        option_count=5,
        varying=True,
        by_text=True,
        metrics=(ACCURACY,),
        published_items=items,
        context="Question: {question}\nAnswer:",
    )


TASKS: tuple[Definition, ...] = (
    _task("easy", "ARC-Easy", "ARC-Easy", 2376),
    _task("challenge", "ARC-Challenge", "ARC-Challenge", 1172),
)
