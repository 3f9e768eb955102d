"""References as a dataset's scorer needs them."""

from __future__ import annotations

import math
import re
from typing import Any

from services.results.datasets.reading.faults import RefusedError, WrongRowError, quoted
from services.results.datasets.reading.paths import has
from services.results.datasets.reading.strict_json import dump, parse
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, Scoring

SCORERS = ("exact_match", "contains", "regex", "choice", "numeric", "token_f1", "rouge_l", "json")
_MOST_PATTERN_CHARACTERS = 1000
_PATTERN_BYTES = 1024 * 1024
"""Of a compiled pattern."""
_MOST_BYTES = 64 * 1024
_MOST_ANSWERS = 100
_MOST_DIGITS = 100
_MOST_NAMES = 200
_NAME_CHARACTERS = 200
_CHOICE_CHARACTERS = 80
_LETTERS = frozenset("abcdefghij")
_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[A-Za-z0-9]")


class References:
    """Reads rows' references. What a scorer could not compare with would fail every job over the dataset, so it is
    refused here; evaluators have the last word. Raises RefusedError for a scoring that cannot be."""

    def __init__(self, scoring: Scoring) -> None:
        _check(scoring)
        self.field = scoring.reference_field
        self._scorer = scoring.scorer or "exact_match"
        self._fields = scoring.fields
        self._choices = frozenset(_bare(choice) for choice in scoring.choices)

    def of(self, value: Any) -> str:
        """The reference as JSON, "" for none: null and a blank text are none. Raises WrongRowError."""
        if value is None or (isinstance(value, str) and not value.strip()):
            return ""
        if self._scorer == "json" and isinstance(value, str):
            # A column of texts may hold JSON; it is read as strictly as lines are.
            value = parse(value.encode(), "reference")
        answers = value if isinstance(value, list) else [value]
        if not 0 < len(answers) <= _MOST_ANSWERS:
            raise WrongRowError(f"The reference has {len(answers):,} answers; it may be 1 to {_MOST_ANSWERS}.")
        for answer in answers:
            self._check_answer(answer)
        text = dump(value)
        if len(text.encode()) > _MOST_BYTES:
            raise WrongRowError(f"The reference has more than {_MOST_BYTES:,} bytes. Shorten it.")
        return text

    def _check_answer(self, answer: Any) -> None:
        if self._scorer == "json":
            self._check_object(answer)
            return
        if not isinstance(answer, str | int | float):
            raise WrongRowError('The reference is no text, number, true or false. Only scorer "json" takes objects.')
        text = str(answer)
        if not text.strip():
            raise WrongRowError("One of the reference's answers is blank. Leave it out.")
        if self._scorer == "regex":
            fault = pattern_fault(answer) if isinstance(answer, str) else "it is no text"
            if fault:
                raise WrongRowError(f"The reference is no pattern: {fault}.")
        elif self._scorer == "numeric":
            if isinstance(answer, bool) or len(text) > _MOST_DIGITS or not _DIGIT.search(text):
                raise WrongRowError(f"The reference {quoted(answer)} is no number, and the scorer is numeric.")
        elif self._scorer == "rouge_l":
            if not _WORD.search(text):
                raise WrongRowError(
                    "The reference has no letter a to z and no digit, which is all that rouge_l counts."
                )
        elif self._scorer == "choice" and _bare(text) not in (self._choices or _LETTERS):
            may = "one of the choices" if self._choices else "a letter from A to J"
            raise WrongRowError(f"The reference {quoted(answer)} is not {may}.")

    def _check_object(self, answer: Any) -> None:
        if not isinstance(answer, dict):
            raise WrongRowError('The reference is no JSON object, and the scorer is "json".')
        if self._fields and not any(has(answer, field) for field in self._fields):
            raise WrongRowError("The reference has none of the fields that are compared.")


def pattern_fault(pattern: str) -> str:
    """Why the pattern is none, "" where it is one."""
    if len(pattern) > _MOST_PATTERN_CHARACTERS:
        return f"it has more than {_MOST_PATTERN_CHARACTERS:,} characters"
    # Imported here: most uploads have no pattern.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0] if error.args else ""
        return quoted(why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why), 120)[1:-1]
    return ""


def _bare(choice: str) -> str:
    """Letters and digits alone: no choice that evaluators tell apart from another is taken for none."""
    folded = choice.casefold()
    return "".join(each for each in folded if each.isalnum()) or folded.strip()


def _check(scoring: Scoring) -> None:
    if scoring.scorer and scoring.scorer not in SCORERS:
        raise RefusedError(f"scorer is {quoted(scoring.scorer)}; it may be {', '.join(SCORERS)}.", "scoring.scorer")
    if not math.isfinite(scoring.tolerance) or scoring.tolerance < 0:
        raise RefusedError("tolerance is a number, 0 or more.", "scoring.tolerance")
    choices = {choice.strip().casefold() for choice in scoring.choices}
    lengths = {len(choice.strip()) for choice in scoring.choices}
    if choices and not (2 <= len(scoring.choices) <= _MOST_NAMES and lengths <= set(range(1, _CHOICE_CHARACTERS + 1))):
        raise RefusedError(
            f"choices may be 2 to {_MOST_NAMES} texts of 1 to {_CHOICE_CHARACTERS} characters.", "scoring.choices"
        )
    if len(choices) < len(scoring.choices):
        raise RefusedError("A choice is given twice, apart from upper case and space. Keep one.", "scoring.choices")
    if len(scoring.fields) > _MOST_NAMES or not all(0 < len(name) <= _NAME_CHARACTERS for name in scoring.fields):
        raise RefusedError(
            f"fields may be up to {_MOST_NAMES} names of 1 to {_NAME_CHARACTERS} characters.", "scoring.fields"
        )
    if len(scoring.reference_field) > _NAME_CHARACTERS:
        raise RefusedError(f"reference_field has over {_NAME_CHARACTERS} characters.", "scoring.reference_field")
    if scoring.answer_pattern and (fault := pattern_fault(scoring.answer_pattern)):
        raise RefusedError(f"answer_pattern is no pattern: {fault}.", "scoring.answer_pattern")
    if scoring.answer_match == ANSWER_MATCH_FIRST and not scoring.answer_pattern:
        raise RefusedError(
            "answer_match says which match of an answer pattern counts. Give answer_pattern, or leave it out.",
            "scoring.answer_match",
        )
