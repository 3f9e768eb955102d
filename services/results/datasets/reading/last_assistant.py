"""Rows that end with the assistant's words, as every file for fine-tuning has them: the answer is in the prompt."""

from __future__ import annotations

from services.results.datasets.reading.faults import RefusedError, WrongRowError
from services.results.datasets.reading.scoring import References
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.job_pb2 import (
    LAST_ASSISTANT_PREFILL,
    LAST_ASSISTANT_REFUSE,
    LAST_ASSISTANT_UNSPECIFIED,
    LastAssistant,
)

_ROLE = "assistant"
_FIELD = "last_assistant"


class LastMessages:
    """Does with such rows what the uploader chose. `rows` is how many there were."""

    def __init__(self, choice: LastAssistant, references: References) -> None:
        """Raises RefusedError for an unknown choice."""
        if choice not in LastAssistant.values():
            raise RefusedError(f"{_FIELD} may be reference, prefill or refuse.", _FIELD)
        self._choice = choice
        self._references = references
        self.rows = 0

    @property
    def done(self) -> LastAssistant:
        """What became of them; unspecified without any."""
        return self._choice if self.rows else LAST_ASSISTANT_UNSPECIFIED

    def settle(self, row: DatasetRow, line: int) -> None:
        """Changes the row as was chosen. Raises WrongRowError, and RefusedError where nothing was."""
        if row.messages[-1].role != _ROLE:
            return
        if self._choice == LAST_ASSISTANT_UNSPECIFIED:
            raise RefusedError(
                f"The row on line {line:,} ends with a message of the assistant's, which may be its answer. Say what "
                f"becomes of such messages: {_FIELD} reference takes them out of the prompt and compares with them, "
                "prefill sends them as the beginning of the answer, refuse names every such line.",
                _FIELD,
            )
        if self._choice == LAST_ASSISTANT_REFUSE:
            raise WrongRowError("The last message is the assistant's. Take it out, or make it the reference.")
        self.rows += 1
        if self._choice == LAST_ASSISTANT_PREFILL:
            return
        if row.reference:
            raise WrongRowError("The row has a reference beside the assistant's last message. Keep one of them.")
        answer = row.messages.pop().content
        if not any(message.content.strip() for message in row.messages):
            raise WrongRowError("Without the assistant's last message nothing is left to ask.")
        row.reference = self._references.of(answer)
