"""What an upload would make of a file, without keeping it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from services.chat_requests.faults import RefusedError
from services.results.datasets.files.opening import Opened
from services.results.datasets.frames import Kind, Limits, Refusal, frame
from services.results.datasets.reading.reader import Emit, Reading
from services.results.datasets.reading.recognition import readings
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions, DatasetRow
from touchstone.v1.dataset_service_pb2 import DatasetReading, PreviewDatasetResponse

_MAY_BE_SAID = (
    "format",
    "sheet",
    "template",
    "last_assistant",
    "custom_id_field",
    "scoring.reference_field",
    "scoring.group_field",
    "scoring.scorer",
)
"""Options by which a file that would be refused may be read."""
_FIRST_ROWS = 5
_MOST_COLUMNS = 100
_MOST_SHEETS = 100
_NAME_CHARACTERS = 200


def preview(pieces: Iterable[bytes], options: DatasetOptions, limits: Limits, emit: Emit) -> None:
    """Reads the file as `read` does, and passes one frame with what it would give to `emit`. Never raises because of
    the file's content or the options."""
    reading: _Preview | None = None
    try:
        reading = _Preview(options, limits, lambda _: None)
        reading.run(iter(pieces))
    except RefusedError as refused:
        if reading is None or not (reading.columns or reading.sheets) or refused.field not in _MAY_BE_SAID:
            emit(Refusal(refused.reason, refused.field).frame())
            return
        reading.refused = refused
    emit(frame(Kind.PREVIEW, reading.response().SerializeToString()))


class _Preview(Reading):
    """Notes what an upload would make of the file, also where rows do not fit."""

    def __init__(self, options: DatasetOptions, limits: Limits, emit: Emit) -> None:
        self.columns: list[str] = []
        self.sheets: list[str] = []
        self.refused: RefusedError | None = None
        self._readings: dict[Dataset.Format, str] = {}
        self._found_dataset = Dataset()
        self._first_rows: list[DatasetRow] = []
        super().__init__(options, limits, emit)

    def response(self) -> PreviewDatasetResponse:
        """What was found until the file ended or was refused."""
        return PreviewDatasetResponse(
            dataset=self._found_dataset,
            rows_found=self._number,
            first_rows=self._first_rows,
            bad_lines=self._wrong.first,
            bad_lines_total=self._wrong.total,
            columns=self.columns,
            readings=[DatasetReading(format=one, reading=words) for one, words in self._readings.items()],
            why=self.refused.reason if self.refused else "",
            field=self.refused.field if self.refused else "",
            sheets=self.sheets,
            reasons=self._wrong.reasons(),
            other_lines=self._wrong.other_lines,
        )

    def _note_sheets(self, names: list[str]) -> None:
        self.sheets = [name[:_NAME_CHARACTERS] for name in names[:_MOST_SHEETS]]

    def _look(self, file: Opened, first: dict[str, Any]) -> None:
        self.columns = [name[:_NAME_CHARACTERS] for name in list(first)[:_MOST_COLUMNS]]
        self._readings = readings(file, first, self._references, self._template is not None)

    def _keep(self, line: int, row: DatasetRow) -> None:
        super()._keep(line, row)
        if len(self._first_rows) < _FIRST_ROWS:
            self._first_rows.append(row)

    def _end(self, size: int) -> None:
        if not self._wrong.total:
            self._check_rows()
        self._found_dataset = self._dataset(size)
