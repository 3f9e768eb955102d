"""BIG-Bench Hard (Suzgun et al. 2022): 27 kinds of problem at which language models were once worse than people.

Answered in writing and zero-shot: the data has no split for examples. The published solved examples are prompts of
three fixed problems each, which this suite does not use.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import EXACT_MATCH
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.kinds.free_answer import FreeAnswer
from services.evaluator.tasks.kinds.text import Classification
from touchstone.v1.suite_pb2 import Weighting

SUITE = "bbh"
TITLE = "BIG-Bench Hard"
DESCRIPTION = "27 kinds of problems that take several steps of reasoning: logic, counting, dates, tables, words."
# As the authors: 23 tasks, of which two are the means of three kinds each.
WEIGHTING = Weighting.WEIGHTING_TASKS

_REVISION = "b5306be6f827cfafbb545ff5a51f96916029b0fd"
_ITEMS = {"causal_judgement": 187, "penguins_in_a_table": 146, "snarks": 178}
"""Items of the tasks that have fewer than 250."""

_COUNT_ONCE = ("logical_deduction", "tracking_shuffled_objects")
"""Prefixes of tasks that are one task for the authors, with three, five and seven objects."""

_OPTION = re.compile(r"^\(([A-Z])\)[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_STEPS = "Think step by step, then give your answer."


def _lettered(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of the problem's text, by letter, and the right letter, which the data writes "(B)"."""
    options = dict(_OPTION.findall(row["input"]))
    right = row["target"].strip().strip("()")
    if list(options) != list(string.ascii_uppercase[: len(options)]) or right not in options:
        raise ValueError(f"the options are {', '.join(options) or 'none'} and the answer is {row['target']!r}")
    return {"input": row["input"], "options": options, "answers": [right]}


def _symbols_match(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
    """ "correct" if the brackets are right, whatever their spacing."""
    return {"correct": float("".join(answer.split()) == "".join(answers[0].split()))}


def _words_match(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
    """ "correct" if the words and their order are right, with or without commas between them."""
    return {"correct": float(_words(answer) == _words(answers[0]))}


def _words(text: str) -> list[str]:
    return text.replace(",", " ").removesuffix(".").casefold().split()


def _common(task: str, instruction: str) -> dict[str, Any]:
    return {
        "suite": SUITE,
        "task": task,
        "title": task.replace("_", " ").capitalize(),
        "source": Source("SaylorTwift/bbh", task, _REVISION),
        "split": "test",
        "train_split": "",
        "texts": {"input": "Problem"},
        "instruction": f"{instruction} {_STEPS}",
        "metrics": (EXACT_MATCH,),
        "published_items": _ITEMS.get(task, 250),
        "score_group": next((group for group in _COUNT_ONCE if task.startswith(group)), ""),
    }


def _options(task: str, instruction: str) -> Definition:
    """Lettered options are in the problem's text."""
    return FreeAnswer(
        **_common(task, instruction),
        columns={"input": pa.string(), "target": pa.string()},
        prepare=_lettered,
        target="answers",
        form="is the letter of the right option, such as (A).",
        kind="letter",
    )


def _labels(task: str, instruction: str, labels: tuple[str, ...]) -> Definition:
    columns = {"input": pa.string(), "target": pa.string()}
    return Classification(**_common(task, instruction), columns=columns, target="target", labels=labels)


def _number(task: str, instruction: str) -> Definition:
    return FreeAnswer(**_common(task, instruction), target="target", kind="number", form="is the result in digits.")


_YES_NO = ("Yes", "No")

TASKS: tuple[Definition, ...] = (
    _labels("boolean_expressions", "Evaluate the Boolean expression.", ("True", "False")),
    _labels("causal_judgement", "Answer the question about causes as a typical person would.", _YES_NO),
    _options("date_understanding", "Work out the date."),
    _options("disambiguation_qa", "Decide whom or what the pronoun stands for, or that this stays open."),
    FreeAnswer(
        **_common("dyck_languages", "Close all brackets that are still open, in the right order."),
        target="target",
        form="is the closing brackets that are missing, parted by blanks, and nothing else.",
        judge=_symbols_match,
    ),
    _labels("formal_fallacies", "Decide whether the argument is deductively valid.", ("valid", "invalid")),
    _options("geometric_shapes", "Name the shape that the path draws."),
    _options("hyperbaton", "Choose the sentence whose adjectives stand in the usual order."),
    _options("logical_deduction_three_objects", "Deduce the order of the three objects."),
    _options("logical_deduction_five_objects", "Deduce the order of the five objects."),
    _options("logical_deduction_seven_objects", "Deduce the order of the seven objects."),
    _options("movie_recommendation", "Choose the film that suits those who like the films named."),
    _number("multistep_arithmetic_two", "Calculate."),
    _labels("navigate", "Decide whether the steps lead back to the starting point.", _YES_NO),
    _number("object_counting", "Count the objects that are asked for."),
    _options("penguins_in_a_table", "Answer the question about the table."),
    _options("reasoning_about_colored_objects", "Answer the question about the objects and their colours."),
    _options("ruin_names", "Choose the humorous edit of the name."),
    _options("salient_translation_error_detection", "Name the kind of error in the translation from German."),
    _options("snarks", "Choose the sarcastic statement."),
    _labels("sports_understanding", "Decide whether the sentence about sport is plausible.", ("yes", "no")),
    _options("temporal_sequences", "Work out when the person could have gone there."),
    _options("tracking_shuffled_objects_three_objects", "Follow the swaps of the three objects."),
    _options("tracking_shuffled_objects_five_objects", "Follow the swaps of the five objects."),
    _options("tracking_shuffled_objects_seven_objects", "Follow the swaps of the seven objects."),
    _labels("web_of_lies", "Decide whether the last person tells the truth.", _YES_NO),
    FreeAnswer(
        **_common("word_sorting", "Sort the words alphabetically."),
        target="target",
        form="is the sorted words, parted by blanks.",
        judge=_words_match,
    ),
)
