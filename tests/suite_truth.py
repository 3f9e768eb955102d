"""The right and a wrong answer to every row of every shipped suite, read off the data's own columns and not through the
tasks under test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.evaluator.suites import shipped
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.medical import TEST_IDS
from tests import rows, suite_rows

Row = Mapping[str, Any]

ROWS = 10
"""Of each split, unless `_COUNTS` says otherwise."""
_COUNTS = {"TIGER-Lab/MMLU-Pro": 56, "qiaojin/PubMedQA": 24, "SaylorTwift/bbh": 5}
_LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True)
class Truth:
    """`right` in the form of an item's reference. `option` is the text behind the right letter, where letters stand for
    texts that the prompt shows as they are."""

    right: str
    wrong: str
    option: str = ""


Read = Callable[[Row], Truth]


_FEWER = {("cais/mmlu", "philosophy", "test"): 7}
"""So that a score over items is not one over tasks."""


def write_mirror(root: Path) -> Path:
    """A mirror with a few rows of every split that a shipped task reads; the demo's rows are in the suite itself."""
    rows.write_mirror(root, dict.fromkeys(_GLUE, ROWS))
    splits = {found for suite in shipped().values() for task in suite.definitions for found in task.splits()}
    for source, split in sorted(splits, key=str):
        if source.dataset not in ("demo", rows.DATASET):
            count = _FEWER.get((source.dataset, source.config, split), _COUNTS.get(source.dataset, ROWS))
            suite_rows.write(root, source.dataset, source.config, split, count)
    return root


def truths(root: Path, definition: Definition) -> list[Truth]:
    """One for each item of a task, in the order of its items."""
    source, task = definition.source, definition.task
    file = root / source.dataset / source.config / f"{definition.split}.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()]
    if source.dataset == "TIGER-Lab/MMLU-Pro":
        found = [row for row in found if row["category"].replace(" ", "_") == task]
    if source.dataset == "qiaojin/PubMedQA":
        found = [row for row in found if row["pubid"] in TEST_IDS]
    read = _READERS.get((source.dataset, source.config)) or _READERS[source.dataset, ""]
    return list(map(read, found))


def _labels(*labels: str, column: str = "label") -> Read:
    """A class by its number, or by its name."""

    def read(row: Row) -> Truth:
        place = row[column] if isinstance(row[column], int) else labels.index(row[column])
        return Truth(labels[place], labels[(place + 1) % len(labels)])

    return read


def _letter(options: Sequence[str], place: int, *, shown: bool = True) -> Truth:
    return Truth(_LETTERS[place], _LETTERS[(place + 1) % len(options)], options[place].strip() if shown else "")


def _medqa(row: Row) -> Truth:
    return _letter([row["options"][letter] for letter in "ABCD"], "ABCD".index(row["answer_idx"]))


def _medmcqa(row: Row) -> Truth:
    return _letter([row[name] for name in ("opa", "opb", "opc", "opd")], row["cop"])


def _arc(row: Row) -> Truth:
    choices = row["choices"]
    return _letter(choices["text"], choices["label"].index(row["answerKey"]))


def _record(row: Row) -> Truth:
    right = next(answer for answer in row["answers"] if answer in row["entities"])
    accepted = {answer.casefold() for answer in row["answers"]}
    return Truth(right, next(entity for entity in row["entities"] if entity.casefold() not in accepted))


def _stsb(row: Row) -> Truth:
    return Truth(f"{row['label']:.6g}", f"{5 - row['label']:.6g}")


def _gsm8k(row: Row) -> Truth:
    number = int(row["answer"].split("####")[1].replace(",", ""))
    return Truth(str(number), str(number + 1))


def _option(row: Row) -> Truth:
    letters = re.findall(r"^\(([A-Z])\)", row["input"], re.MULTILINE)
    right = row["target"].strip("()")
    return Truth(right, letters[(letters.index(right) + 1) % len(letters)])


def _number(row: Row) -> Truth:
    return Truth(row["target"], str(int(row["target"]) + 1))


def _written(row: Row) -> Truth:
    return Truth(row["target"], "nothing of the kind")


_ENTAILMENT = ("entailment", "not_entailment")
_GLUE: dict[str, Read] = {
    "cola": _labels("unacceptable", "acceptable"),
    "sst2": _labels("negative", "positive"),
    "mrpc": _labels("not_equivalent", "equivalent"),
    "qqp": _labels("not_duplicate", "duplicate"),
    "stsb": _stsb,
    "mnli": _labels("entailment", "neutral", "contradiction"),
    "qnli": _labels(*_ENTAILMENT),
    "rte": _labels(*_ENTAILMENT),
    "wnli": _labels(*_ENTAILMENT[::-1]),
}
_SUPERGLUE: dict[str, Read] = {
    **dict.fromkeys(("boolq", "multirc", "wic", "wsc.fixed"), _labels("no", "yes")),
    **dict.fromkeys(("rte", "axb", "axg"), _labels(*_ENTAILMENT)),
    "cb": _labels("entailment", "contradiction", "neutral"),
    "copa": _labels("choice1", "choice2"),
    "record": _record,
}
_BBH: dict[str, Read] = {
    **dict.fromkeys(("causal_judgement", "navigate", "web_of_lies"), _labels("Yes", "No", column="target")),
    **dict.fromkeys(("multistep_arithmetic_two", "object_counting"), _number),
    **dict.fromkeys(("dyck_languages", "word_sorting"), _written),
    "boolean_expressions": _labels("True", "False", column="target"),
    "formal_fallacies": _labels("valid", "invalid", column="target"),
    "sports_understanding": _labels("yes", "no", column="target"),
    "": _option,
}
_READERS: dict[tuple[str, str], Read] = {
    **{(rows.DATASET, config): read for config, read in _GLUE.items()},
    **{("aps/super_glue", config): read for config, read in _SUPERGLUE.items()},
    **{("SaylorTwift/bbh", config): read for config, read in _BBH.items()},
    ("cais/mmlu", ""): lambda row: _letter(row["choices"], row["answer"]),
    ("GBaker/MedQA-USMLE-4-options", ""): _medqa,
    ("openlifescienceai/medmcqa", ""): _medmcqa,
    ("qiaojin/PubMedQA", ""): _labels("yes", "no", "maybe", column="final_decision"),
    ("allenai/ai2_arc", ""): _arc,
    # Endings are freed of marks before they are shown.
    ("Rowan/hellaswag", ""): lambda row: _letter(row["endings"], int(row["label"]), shown=False),
    ("TIGER-Lab/MMLU-Pro", ""): lambda row: _letter(row["options"], row["answer_index"]),
    ("openai/gsm8k", ""): _gsm8k,
}
