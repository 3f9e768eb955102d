"""People's verdicts on published answers, with a judge by words alone (the record's README tells the source)."""

from __future__ import annotations

import gzip
import json
import os
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from services.results.statistics.metric_values import Floats

FILE = Path(os.environ.get("TOUCHSTONE_RECORDS_DIR", "")).resolve() / "judged" / "evouna_nq.json.gz"
ABSENT = "There are no published verdicts. TOUCHSTONE_RECORDS_DIR must name the folder of the records."
SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
ANSWERS = 3_610


@cache
def rows() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        found: list[dict[str, Any]] = json.load(file)
    return found


@cache
def verdicts(system: str) -> tuple[Floats, Floats]:
    """People's verdicts on a system's answers, 1 or 0, and the judge's. Answers on which nobody gave a verdict, most of
    them to improper questions, are left out: there is no truth for them."""
    judged = [row for row in rows() if row[f"judge_{system}"] is not None]
    people = [float(row[f"judge_{system}"]) for row in judged]
    judge = [float(_contained(row["golden_answer"] or "", row[f"answer_{system}"] or "")) for row in judged]
    return np.array(people), np.array(judge)


def _contained(references: str, answer: str) -> bool:
    """Whether the answer contains one of the references, which are divided by "/"."""
    words = _plain(answer)
    return any(plain in words for plain in map(_plain, references.split("/")) if plain)


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.lower())
    letters = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", re.sub(r"[^\w\s]|_", " ", letters)).split())
