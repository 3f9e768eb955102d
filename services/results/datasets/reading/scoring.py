"""References as a dataset's scorer needs them."""

from __future__ import annotations

import re
from typing import Any

from services import expected_calls, json_schemas, patterns
from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.chat_requests.paths import has
from services.chat_requests.strict_json import dump, parse
from services.words import references, refusals, scorers
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.scoring_pb2 import Scoring

TOOL_CALLS = "tool_calls"
_SCHEMA = "json_schema"
_JSON = ("json", TOOL_CALLS, _SCHEMA)
_MOST_BYTES = 64 * 1024
_MOST_DIGITS = 100
_LETTERS = frozenset("abcdefghij")
_DIGIT = re.compile(r"[0-9]")
_WORD = re.compile(r"[A-Za-z0-9]")


class References:
    """Reads rows' references. A reference that the scorer cannot compare with would fail every job over the dataset, so
    it is refused here; evaluators check again. Raises RefusedError for an invalid scoring."""

    def __init__(self, scoring: Scoring) -> None:
        _check(scoring)
        self.field = scoring.reference_field
        self.group_field = scoring.group_field
        self._scorer = scoring.scorer or scorers.USUAL
        self._has_schema = bool(scoring.schema)
        self._fields = scoring.fields
        self._choices = frozenset(_bare(choice) for choice in scoring.choices)

    def of(self, value: Any, row: DatasetRow) -> str:
        """The reference as JSON, "" for none: null and a blank text count as none. `row` has what is sent with it.
        Raises WrongRowError."""
        if references.is_none(value):
            return ""
        if self._scorer in _JSON and isinstance(value, str):
            # A column of texts may hold JSON; it is read as strictly as lines are.
            value = parse(value.encode(), "reference")
        if self._scorer == TOOL_CALLS:
            _check_calls(value)
        elif self._scorer == _SCHEMA:
            # The reference of a row that has another schema is for other scorers.
            if not self._has_schema and "json_schema" not in row.sampling.extra_json:
                _check_schema(value)
        else:
            self._check_answers(value if isinstance(value, list) else [value])
        text = dump(value)
        if len(text.encode()) > _MOST_BYTES:
            raise WrongRowError(f"The reference has more than {_MOST_BYTES:,} bytes. Shorten it.")
        return text

    @property
    def are_calls(self) -> bool:
        """Whether a reference is a list of tool calls."""
        return self._scorer == TOOL_CALLS

    @property
    def are_patterns(self) -> bool:
        """Whether a reference is a pattern that the answer must match."""
        return self._scorer == "regex"

    def _check_answers(self, answers: list[Any]) -> None:
        if why := references.count_fault(len(answers)):
            raise WrongRowError(why)
        for answer in answers:
            self._check_answer(answer)

    def _check_answer(self, answer: Any) -> None:
        if self._scorer == "json":
            self._check_object(answer)
            return
        if why := references.answer_fault(answer):
            raise WrongRowError(why)
        text = str(answer)
        if self._scorer == "regex":
            if not isinstance(answer, str):
                raise WrongRowError("The reference must be a string, which the regex scorer takes as a pattern.")
            try:
                patterns.compiled(answer)
            except ValueError as error:
                raise WrongRowError(f"The reference {error}.") from error
        elif self._scorer == "numeric":
            if isinstance(answer, bool) or len(text) > _MOST_DIGITS or not _DIGIT.search(text):
                raise WrongRowError(f"The reference {quoted(answer)} is not a number, which the numeric scorer needs.")
        elif self._scorer == "rouge_l":
            if not _WORD.search(text):
                raise WrongRowError(
                    "The reference has no letters a to z and no digits, and rouge_l counts nothing else."
                )
        elif self._scorer == "choice" and _bare(text) not in (self._choices or _LETTERS):
            may = "one of the choices" if self._choices else "a letter from A to J"
            raise WrongRowError(f"The reference {quoted(answer)} is not {may}.")

    def _check_object(self, answer: Any) -> None:
        if not isinstance(answer, dict):
            raise WrongRowError("The reference is not a JSON object, which the json scorer needs.")
        if self._fields and not any(has(answer, field) for field in self._fields):
            raise WrongRowError("The reference has none of the compared fields.")


def _check_calls(value: Any) -> None:
    try:
        for answer in expected_calls.answers(value):
            expected_calls.expected(answer)
    except ValueError as error:
        raise WrongRowError(f"The reference {error}.") from error


def _check_schema(value: Any) -> None:
    try:
        json_schemas.compiled(json_schemas.written(value))
    except ValueError as error:
        raise WrongRowError(f"The reference {error}.") from error


def _bare(choice: str) -> str:
    """Letters and digits only: choices that evaluators distinguish must stay different here."""
    folded = choice.casefold()
    return "".join(each for each in folded if each.isalnum()) or folded.strip()


def _check(scoring: Scoring) -> None:
    # Whether there is such a scorer was asked before the file was read.
    option, sentence = scorers.problem(scoring, (scoring.scorer,))
    if sentence:
        raise RefusedError(sentence, f"scoring.{option}")
    if scoring.schema:
        try:
            json_schemas.compiled(scoring.schema)
        except ValueError as error:
            raise RefusedError(f"The schema {error}.", "scoring.schema") from error
    if len({choice.strip().casefold() for choice in scoring.choices}) < len(scoring.choices):
        raise RefusedError("Two choices differ only in case or spaces. Keep one.", "scoring.choices")
    if scoring.answer_pattern:
        try:
            patterns.compiled(scoring.answer_pattern)
        except ValueError as error:
            raise RefusedError(refusals.pattern(error), "scoring.answer_pattern") from error
