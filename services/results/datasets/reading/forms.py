"""The forms of rows, each as a conversion from the file's content to the stored row."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

from services.chat_requests import messages, sampling
from services.chat_requests.faults import WrongRowError, quoted
from services.chat_requests.paths import has, value_at
from services.chat_requests.strict_json import dump, parse
from services.chat_requests.template import Template
from services.results.datasets.reading.promptfoo import OneScorer, Promptfoo
from services.results.datasets.reading.row import Row
from services.results.datasets.reading.scoring import References
from services.results.datasets.reading.shapes import Shape
from services.results.datasets.reading.tally import Tally
from services.words.references import group
from touchstone.v1.dataset_pb2 import DatasetRow

_METHOD, _URL = "POST", "/v1/chat/completions"
_OWN_ID = "custom_id"
_ID_BYTES = 512
_METADATA_BYTES = 64 * 1024
_NAME_CHARACTERS = 200
_TWICE_CHARACTERS = 1000
"""A column that the template inserts as a whole is not also kept as metadata if it is longer."""


class Form(Protocol):
    def row(self, values: dict[str, Any]) -> DatasetRow:
        """The row, with an empty custom_id if it has none. Raises WrongRowError."""
        ...


class BatchLines:
    """Lines of an OpenAI batch: custom_id, method, url, body. "reference" and "metadata" may be next to them; other
    names, and the body's own "metadata", are also metadata."""

    def __init__(self, references: References, tally: Tally) -> None:
        self._references = references
        self._tally = tally

    def row(self, values: dict[str, Any]) -> DatasetRow:
        if values.pop("method", None) != _METHOD:
            raise WrongRowError(f'"method" must be "{_METHOD}".')
        if values.pop("url", None) != _URL:
            raise WrongRowError(f'"url" must be "{_URL}"; other endpoints are not supported.')
        body = values.pop("body", None)
        if not isinstance(body, dict):
            raise WrongRowError('"body" must be an object: the request with its "messages".')
        if values.get(_OWN_ID) is None:
            raise WrongRowError('"custom_id" is missing. Give every line its own.')
        row = DatasetRow(custom_id=_custom_id(values.pop(_OWN_ID)))
        messages.converse(row, body.pop("messages", None))
        if isinstance(model := body.pop("model", None), str):
            self._tally.note_model(model[:_NAME_CHARACTERS])
        notes = body.pop("metadata", None)
        sampling.ask_for(row, body)
        own = values.pop("metadata", None)
        metadata = _joined(_joined(values, own), notes)
        _keep(row, metadata, self._references, self._tally)
        return row


class PlainLines:
    """Lines with "prompt" or "messages", and perhaps "reference", "metadata", a request's fields, "extra" with further
    ones, and an id. Other names are metadata."""

    def __init__(self, references: References, tally: Tally, id_field: str, cells: bool = False) -> None:
        """With `cells`, the rows are a table's: an empty cell is none, and lists and numbers may be texts."""
        self._references = references
        self._tally = tally
        self._id_field = id_field
        self._cells = cells

    def row(self, values: dict[str, Any]) -> DatasetRow:
        if self._cells:
            values = _of_cells(values)
        row = DatasetRow(custom_id=_taken_id(values, self._id_field))
        prompt, conversation = values.pop("prompt", None), values.pop("messages", None)
        if prompt is None and conversation is None:
            raise WrongRowError(
                'The line has neither "prompt" nor "messages". Add one, or upload with a template that builds '
                "messages from columns."
            )
        if prompt is not None and conversation is not None:
            raise WrongRowError('The line has both "prompt" and "messages". Keep one of them.')
        if conversation is None:
            messages.ask(row, prompt)
        else:
            messages.converse(row, conversation)
        fields = _object(values.pop("extra", None), "extra")
        for name in [name for name in values if sampling.is_field(name)]:
            if name in fields:
                raise WrongRowError(f'{quoted(name)} is both inside and outside "extra". Keep one of them.')
            fields[name] = values.pop(name)
        sampling.ask_for(row, fields)
        if isinstance(model := values.pop("model", None), str):
            self._tally.note_model(model[:_NAME_CHARACTERS])
        own = values.pop("metadata", None)
        _keep(row, _joined(values, own), self._references, self._tally)
        return row


def _of_cells(values: dict[str, Any]) -> dict[str, Any]:
    """The cells of a table as a line would have them."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, str) and (name in ("messages", "extra", "metadata") or sampling.is_field(name)):
            # A text that is not JSON stays a text, and the field takes or refuses it.
            with suppress(WrongRowError):
                value = parse(value.encode(), "cell")
        made[name] = value
    return made


class Columns:
    """Objects of any columns, from which the template makes messages. All columns except the id's and "reference" are
    also metadata."""

    def __init__(self, template: Template, references: References, tally: Tally, id_field: str) -> None:
        self._template = template
        self._references = references
        self._tally = tally
        self._id_field = id_field

    def row(self, values: dict[str, Any]) -> DatasetRow:
        row = DatasetRow()
        self._template.fill(row, values)
        row.custom_id = _taken_id(values, self._id_field)
        for name in self._template.names:
            long = isinstance(text := values.get(name), str) and len(text) > _TWICE_CHARACTERS
            if long and name != self._references.group_field:
                del values[name]
        _keep(row, values, self._references, self._tally)
        return row


class Shaped:
    """Rows of another project. What is neither question nor reference is metadata, whatever its name."""

    def __init__(self, shape: Shape, references: References, tally: Tally, id_field: str) -> None:
        self._shape = shape
        self._keep_answers = references.field not in ("", "reference")
        self._id_field = id_field
        self._lines = PlainLines(references, tally, id_field)

    def row(self, values: dict[str, Any]) -> DatasetRow:
        own = {name: values.pop(name) for name in (self._id_field or _OWN_ID,) if name in values}
        line = self._shape.question(Row(values, self._keep_answers))
        if self._keep_answers:
            line.pop("reference", None)
        if self._id_field:
            line.pop(_OWN_ID, None)
        further = values.pop("metadata", None)
        if isinstance(further, dict):
            values = _joined(values, further)
        elif further is not None:
            values["metadata"] = further
        return self._lines.row(line | own | {"metadata": values})


class Tests:
    """Tests of promptfoo: their variables are columns."""

    def __init__(self, tests: Promptfoo, columns: Columns, references: References) -> None:
        self._tests = tests
        self._columns = columns
        self._as_patterns = references.are_patterns
        self._has_own = references.field not in ("", "reference")
        self._one_scorer = OneScorer()

    def row(self, values: dict[str, Any]) -> DatasetRow:
        test = Row(values)
        made = self._tests.columns(test, as_pattern=self._as_patterns)
        if not (self._as_patterns or self._has_own):
            self._one_scorer.check(test)
        return self._columns.row(made)


def _taken_id(values: dict[str, Any], field: str) -> str:
    """Takes the id out of the values; "" if there is none and none is required."""
    value = values.pop(field or _OWN_ID, None)
    if value is None or value == "":
        if field:
            raise WrongRowError(f"The row has no {quoted(field)}, which must hold its id.")
        return ""
    return _custom_id(value)


def _custom_id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise WrongRowError(f"The row's id must be a string or a whole number; it is {quoted(value, 20)}.")
    if not 0 < len(value.encode()) <= _ID_BYTES:
        raise WrongRowError(f"The row's id must have between 1 and {_ID_BYTES} bytes; it has {len(value.encode()):,}.")
    return value


def _object(value: Any, name: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise WrongRowError(f'"{name}" must be an object with names and values.')
    return value or {}


def _joined(one: dict[str, Any], other: Any) -> dict[str, Any]:
    """Metadata of two places. Raises WrongRowError for a name with a value in each."""
    further = _object(other, "metadata")
    if not one or not further:
        return one or further
    for name in one:
        if name in further:
            raise WrongRowError(f'{quoted(name)} is both inside and outside "metadata". Keep one of them.')
    return one | further


def _keep(row: DatasetRow, metadata: dict[str, Any], references: References, tally: Tally) -> None:
    """Puts metadata and reference into the row. A reference with another name stays in the metadata, where a job with
    another scoring can find it."""
    if references.field in ("", "reference"):
        value = metadata.pop("reference", None)
    else:
        value = value_at(metadata, references.field) if has(metadata, references.field) else None
    row.reference = references.of(value, row)
    if references.group_field and has(metadata, references.group_field):
        tally.note_group(group(value_at(metadata, references.group_field)))
    if not metadata:
        return
    text = dump(metadata)
    if len(text) > _METADATA_BYTES or len(text.encode()) > _METADATA_BYTES:
        raise WrongRowError(
            f"The row's metadata has more than {_METADATA_BYTES:,} bytes. Remove columns that you do not need."
        )
    for name in metadata:
        if len(name) > _NAME_CHARACTERS:
            raise WrongRowError(f"The name {quoted(name, 20)} has more than {_NAME_CHARACTERS} characters. Shorten it.")
    row.metadata = text
    tally.note_names(list(metadata))
