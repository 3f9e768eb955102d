"""MMLU-Pro (Wang et al. 2024): fourteen subjects, up to ten options per question, on the test split.

The validation split holds five solved questions per subject, which serve as few-shot examples with their reasoning.
Log-likelihood mode follows lm_eval 0.4.13's `leaderboard_mmlu_pro`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice
from touchstone.v1.suite_pb2 import Weighting

SUITE = "mmlu_pro"
TITLE = "MMLU-Pro"
DESCRIPTION = "Harder questions from fourteen subjects that take reasoning, with up to ten options each."
# As the authors' evaluation and lm_eval.
WEIGHTING = Weighting.WEIGHTING_ITEMS

_SOURCE = Source("TIGER-Lab/MMLU-Pro", "default", "b189ec765aa7ed75c8acfea42df31fdae71f97be")
_BEGINNING = re.compile(r"\AA: Let's think step by step\.\s*")
_END = re.compile(r"\s*The answer is \([A-J]\)\.?\s*\Z")

# Items of the test split by subject.
_SUBJECTS = {
    "biology": 717,
    "business": 789,
    "chemistry": 1132,
    "computer science": 410,
    "economics": 844,
    "engineering": 969,
    "health": 818,
    "history": 381,
    "law": 1101,
    "math": 1351,
    "other": 924,
    "philosophy": 499,
    "physics": 1299,
    "psychology": 798,
}


def _reasoned(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A worked solution without the words with which the data introduces it and its answer."""
    return {**row, "steps": _END.sub("", _BEGINNING.sub("", row["cot_content"]))}


def _of(subject: str) -> Callable[[pa.Table], pa.Array]:
    return lambda table: pc.equal(table["category"], subject)


TASKS: tuple[Definition, ...] = tuple(
    MultipleChoice(
        suite=SUITE,
        task=subject.replace(" ", "_"),
        title=subject.capitalize(),
        source=_SOURCE,
        split="test",
        train_split="validation",
        columns={
            **dict.fromkeys(("question", "category", "cot_content"), pa.string()),
            "options": pa.list_(pa.string()),
            "answer_index": pa.int64(),
        },
        keep=_of(subject),
        train_keep=_of(subject),
        prepare=_reasoned,
        texts={"question": "Question"},
        instruction="Choose the right option. Think step by step before you answer.",
        options="options",
        target="answer_index",
        option_count=10,
        varying=True,
        reasoning="steps",
        max_shots=5,
        metrics=(ACCURACY,),
        published_items=items,
        context="{question}\n{lettered}\nAnswer:",
    )
    for subject, items in _SUBJECTS.items()
)
