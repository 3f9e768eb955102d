"""An upload from its first byte to the last frame."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.chat_requests.paths import has
from services.chat_requests.template import Template
from services.results.datasets.files.decoding import Decoded
from services.results.datasets.files.lines import NO_ROWS, Values
from services.results.datasets.files.opening import Container, Opened, Sheet, opened
from services.results.datasets.frames import BadLines, Kind, Limits, Refusal, frame
from services.results.datasets.reading.forms import BatchLines, Columns, Form, PlainLines, Shaped, Tests
from services.results.datasets.reading.last_assistant import LastMessages
from services.results.datasets.reading.promptfoo import template_of
from services.results.datasets.reading.recognition import PROMPTFOO, SHAPE_OF, no_template, sentence, told_by
from services.results.datasets.reading.row import Row
from services.results.datasets.reading.scoring import References
from services.results.datasets.reading.shards import Sharder
from services.results.datasets.reading.tally import CustomIds, Tally, WrongLines
from services.words import refusals
from services.words.enums import DATASET_FORMATS, UPLOAD_FORMATS
from services.words.refusals import counted
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions, DatasetRow
from touchstone.v1.job_pb2 import LAST_ASSISTANT_REFERENCE

_HEAD_LINES = 100
_ROWS_A_LOOK = 64
"""Rows between two checks of the CPU time."""

Emit = Callable[[bytes], None]


def read(pieces: Iterable[bytes], options: DatasetOptions, limits: Limits, emit: Emit) -> None:
    """Reads the file and passes the frames to `emit`. Never raises because of the file's content or the options."""
    try:
        Reading(options, limits, emit).run(iter(pieces))
    except RefusedError as refused:
        emit(Refusal(refused.reason, refused.field).frame())


class Reading:
    """One reading of one file. Raises RefusedError, also of the options."""

    def __init__(self, options: DatasetOptions, limits: Limits, emit: Emit) -> None:
        self._options = options
        self._limits = limits
        self._emit = emit
        self._tally = Tally()
        self._ids = CustomIds()
        self._sharder = Sharder()
        self._references = References(options.scoring)
        self._last_messages = LastMessages(options.last_assistant, self._references)
        self._template = Template.parse(options.template) if options.template else None
        self._wrong = WrongLines()
        self._began = time.process_time()
        self._number = 0
        """Of the row, from 1."""

    def run(self, pieces: Iterator[bytes]) -> None:
        decoded = Decoded(pieces, self._limits)
        for number, found in self._found(decoded):
            self._number += 1
            if self._number > self._limits.rows:
                raise RefusedError(f"The file has more than {counted(self._limits.rows, 'row')}. Upload it in parts.")
            if self._number % _ROWS_A_LOOK == 0:
                self._check_work(decoded.taken)
            try:
                if isinstance(found, WrongRowError):
                    raise found
                row = self._form.row(found)
                self._last_messages.settle(row, number)
                self._keep(number, row)
            except WrongRowError as wrong:
                self._wrong.add(number, wrong.reason)
        self._end(decoded.bytes)

    def _check_work(self, taken: int) -> None:
        used = time.process_time() - self._began
        if used > self._limits.cpu_s:
            raise RefusedError(
                f"Reading the file takes more than {self._limits.cpu_s:,} s of CPU time. Upload it in parts, or "
                "simplify its template and references."
            )
        if used > self._limits.work_s(taken):
            raise RefusedError(
                f"Reading the file takes too much CPU time for its size: {used:,.0f} s for {taken:,} bytes. Upload "
                "it uncompressed, or simplify its template and references."
            )

    # -- what the file is ------------------------------------------------------------------------------------------

    def _found(self, decoded: Decoded) -> Values:
        """The file's rows, once it is clear how they are read."""
        format_ = self._options.format
        if format_ not in Dataset.Format.values():
            raise RefusedError(refusals.not_valid(format_, "format", UPLOAD_FORMATS), "format")
        as_csv = format_ == Dataset.FORMAT_CSV
        sheet = Sheet(self._options.sheet, self._note_sheets)
        name, limits = self._options.name, self._limits
        file = opened(decoded, name, as_csv, limits, lambda: self._check_work(decoded.taken), sheet)
        # The first row that is an object decides the form: a broken line before it does not make the others wrong.
        head: list[tuple[int, dict[str, Any] | WrongRowError]] = []
        for number, found in islice(file.values, _HEAD_LINES):
            head.append((number, found))
            if not isinstance(found, WrongRowError):
                break
        if not head and (file.header is None or self._template is None):
            raise file.no_rows
        last = head[-1][1] if head else None
        if isinstance(last, WrongRowError) and file.header is None and file.container is not Container.JSON_LINES:
            number, first_wrong = head[0]
            assert isinstance(first_wrong, WrongRowError)
            raise RefusedError(f"No row can be read. Row {number:,}: {first_wrong.reason}")
        first = last if isinstance(last, dict) else dict.fromkeys(file.header or (), "")
        self._look(file, first)
        self._format = format_ or told_by(file, first, self._template is not None)
        self._form = self._form_of(self._format, file, first)
        if self._format == Dataset.FORMAT_SHAREGPT and not self._options.last_assistant:
            self._last_messages = LastMessages(LAST_ASSISTANT_REFERENCE, self._references)
        if file.header is not None:
            self._check_header(file.header)
        self._reading = sentence(file, self._format, first, self._references, self._template is not None)
        return chain(head, file.values)

    def _note_sheets(self, names: list[str]) -> None:
        """What a preview notes of a workbook before one of its sheets is read."""

    def _look(self, file: Opened, first: dict[str, Any]) -> None:
        """What a preview notes before the form is chosen."""

    def _check_header(self, header: list[str]) -> None:
        """A fault of every row is reported once."""
        columns = dict.fromkeys(header, "")
        wanted = [("template", name) for name in (self._template.names if self._template else ())]
        wanted.append(("custom_id_field", self._options.custom_id_field))
        wanted.append(("scoring.reference_field", self._references.field))
        wanted.append(("scoring.group_field", self._references.group_field))
        for field, name in wanted:
            if name and not has(columns, name):
                shown = ", ".join(quoted(column, 20) for column in header[:10])
                raise RefusedError(f"The file has no column {quoted(name)}. Its columns: {shown}.", field)

    def _form_of(self, format_: Dataset.Format, file: Opened, first: dict[str, Any]) -> Form:
        id_field = self._options.custom_id_field
        own = format_ in (Dataset.FORMAT_BATCH, Dataset.FORMAT_LINES)
        shape = SHAPE_OF.get(format_)
        if (own or shape is not None) and self._template is not None:
            what = "Lines that have messages do" if own else f"Rows read as {DATASET_FORMATS.of(format_)} do"
            raise RefusedError(f"{what} not use a template. Leave it out.", "template")
        if format_ == Dataset.FORMAT_BATCH:
            if id_field not in ("", "custom_id"):
                raise RefusedError('Batch lines have their id in "custom_id". Leave the field out.', "custom_id_field")
            return BatchLines(self._references, self._tally)
        if format_ == Dataset.FORMAT_LINES:
            return PlainLines(self._references, self._tally, id_field, file.header is not None)
        if shape is not None:
            return Shaped(shape, self._references, self._tally, id_field)
        template = self._template
        if format_ == Dataset.FORMAT_PROMPTFOO:
            template = template or Template.parse(template_of(Row(first), file.others))
            columns = Columns(template, self._references, self._tally, id_field)
            return Tests(PROMPTFOO, columns, self._references)
        if template is None:
            raise no_template(list(first))
        return Columns(template, self._references, self._tally, id_field)

    # -- rows ------------------------------------------------------------------------------------------------------

    def _keep(self, line: int, row: DatasetRow) -> None:
        own = row.custom_id
        row.custom_id = own or f"row-{self._number}"
        if earlier := self._ids.add(row.custom_id, line):
            if own:
                raise WrongRowError(f"The id {quoted(own)} is already on line {earlier:,}. Give each row its own.")
            raise WrongRowError(
                f'The row has no id, and line {earlier:,} already has its default id "{row.custom_id}". Give it an id.'
            )
        shard = self._sharder.add(row)
        self._tally.add(row)
        if shard is not None and not self._wrong.total:
            self._emit(shard.frame())

    def _end(self, size: int) -> None:
        if self._wrong.total:
            self._emit(BadLines(self._wrong.first, self._wrong.total, self._wrong.reasons()).frame())
            return
        self._check_rows()
        shard = self._sharder.rest()
        if shard is not None:
            self._emit(shard.frame())
        self._emit(frame(Kind.DATASET, self._dataset(size).SerializeToString()))

    def _check_rows(self) -> None:
        if not self._number:
            raise RefusedError(NO_ROWS)
        wanted = [
            (self._references.field, self._tally.rows_with_reference, "hold the reference", "reference_field"),
            (self._references.group_field, self._tally.groups, "name the row's group", "group_field"),
        ]
        for field, found, what, option in wanted:
            if field and not found:
                known = ", ".join(quoted(name, 20) for name in self._tally.names[:10])
                raise RefusedError(
                    f"No row has {quoted(field)}, which must {what}. Rows have {known or 'no metadata'}.",
                    f"scoring.{option}",
                )

    def _dataset(self, size: int) -> Dataset:
        dataset = self._tally.dataset()
        dataset.format, dataset.bytes, dataset.digest = self._format, size, self._sharder.digest
        dataset.reading = self._reading
        dataset.last_assistant = self._last_messages.done
        dataset.rows_with_last_assistant = self._last_messages.rows
        return dataset
