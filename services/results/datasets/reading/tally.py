"""What the rows of a dataset tell together."""

from __future__ import annotations

from touchstone.v1.dataset_pb2 import Dataset, DatasetRow

_MOST_NAMES = 100
_MOST_MODELS = 10
_BYTES_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4


class Tally:
    """Counts rows one by one."""

    def __init__(self) -> None:
        self.rows = 0
        self.rows_with_reference = 0
        self._characters = 0
        self._tokens = 0
        self._longest = 0
        self._most_max_tokens = 0
        self._bounded = True
        self._names: dict[str, None] = {}
        self._models: dict[str, None] = {}

    def add(self, row: DatasetRow) -> None:
        self.rows += 1
        self.rows_with_reference += bool(row.reference)
        size = 0
        for message in row.messages:
            content = message.content
            self._characters += len(content)
            size += len(content) if content.isascii() else len(content.encode())
        self._tokens += -(-size // _BYTES_A_TOKEN) + _TOKENS_A_MESSAGE * len(row.messages)
        self._longest = max(self._longest, size)
        if row.sampling.HasField("max_tokens"):
            self._most_max_tokens = max(self._most_max_tokens, row.sampling.max_tokens)
        else:
            self._bounded = False

    def note_names(self, names: list[str]) -> None:
        """Metadata fields of a row."""
        for name in names:
            if name not in self._names and len(self._names) < _MOST_NAMES:
                self._names[name] = None

    def note_model(self, model: str) -> None:
        """The model that a batch line names."""
        if len(self._models) < _MOST_MODELS:
            self._models[model] = None

    @property
    def names(self) -> list[str]:
        return list(self._names)

    def dataset(self) -> Dataset:
        return Dataset(
            rows=self.rows,
            rows_with_reference=self.rows_with_reference,
            prompt_characters=self._characters,
            input_tokens=self._tokens,
            longest_prompt_bytes=self._longest,
            metadata_fields=self._names,
            models=self._models,
            most_max_tokens=self._most_max_tokens if self._bounded else 0,
        )
