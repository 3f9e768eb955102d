"""GSM8K (Cobbe et al. 2021): grade-school arithmetic in words, on the test split, answered in writing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import EXACT_MATCH
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.kinds.free_answer import FreeAnswer

SUITE = "gsm8k"
TITLE = "GSM8K"
DESCRIPTION = "Grade-school arithmetic in word problems: only the final number counts."

_CALCULATION = re.compile(r"<<[^>]*>>")


def _solved(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data's answer is a worked solution with a calculator's marks in it, then #### and the number."""
    steps, _, number = row["answer"].rpartition("####")
    return {"question": row["question"], "steps": _CALCULATION.sub("", steps), "number": number}


TASKS: tuple[Definition, ...] = (
    FreeAnswer(
        suite=SUITE,
        task="gsm8k",
        title=TITLE,
        source=Source("openai/gsm8k", "main", "740312add88f781978c0658806c59bc2815b9866"),
        split="test",
        columns={"question": pa.string(), "answer": pa.string()},
        prepare=_solved,
        texts={"question": "Problem"},
        instruction="Solve the problem. Write down your steps.",
        kind="number",
        form="is the final result without a unit.",
        target="number",
        reasoning="steps",
        metrics=(EXACT_MATCH,),
        published_items=1319,
    ),
)
