"""Units sent through providers' batch APIs: one record for each unit of an attempt.

The record is written before anything is sent, and every step is a write that is refused if another evaluator has
written meanwhile. So only one of two evaluators that have the same unit sends it, and after a crash the next one finds
what its predecessor has sent instead of paying for it again.
"""

from __future__ import annotations

import enum
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields

from services.bus.contract import PROVIDER_BATCHES
from services.bus.operations import Bus

_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "BatchStage": (str,)}


class BatchStage(enum.StrEnum):
    """The progress of a unit. From SENDING on it may have to be paid."""

    WRITING = "writing"
    """Its lines are created and uploaded, which is free."""
    SENDING = "sending"
    """The request to begin has been sent: only the provider's list shows whether it has begun."""
    WAITING = "waiting"
    READING = "reading"
    STORED = "stored"
    """Every answer is on the results stream."""
    CLOSED = "closed"
    """Its job is over; the provider's batch, if there was one, was cancelled."""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One unit. `mark` is how the provider's batch is found in its list, `batch` its id there. `rows` were sent; `done`
    and `failed` of them as the provider reports. `label` names it to users; `words` say what is wrong, if anything.
    `tries` counts how often lines were created, `passes` how often publishing answers began, `rounds` batches that the
    provider did not accept. `written_at` is in seconds since 1970, by the clock of `evaluator`, the writer.
    """

    job_id: str
    attempt: int
    unit: int
    endpoint: str
    mark: str
    stage: BatchStage = BatchStage.WRITING
    batch: str = ""
    label: str = ""
    rows: int = 0
    done: int = 0
    failed: int = 0
    words: str = ""
    tries: int = 0
    passes: int = 0
    rounds: int = 0
    evaluator: str = ""
    written_at: float = 0.0

    @property
    def key(self) -> str:
        return batch_key(self.job_id, self.attempt, self.unit)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> BatchRecord:
        """Raises ValueError for anything but a record. Fields of a newer version are left out."""
        values = json.loads(data)
        if not isinstance(values, dict):
            raise ValueError("The record of a batch must be a JSON object.")
        known = {field.name for field in fields(cls)}
        record = {name: value for name, value in values.items() if name in known}
        try:
            made = cls(**(record | {"stage": BatchStage(record["stage"])}))
        except (KeyError, TypeError) as error:
            raise ValueError(f"The record of a batch lacks a field: {error}") from error
        for field in fields(cls):
            value, kind = getattr(made, field.name), _TYPES[str(field.type)]
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ValueError(f"The record of a batch has a wrong {field.name}: {str(value)[:40]!r}.")
        return made


def batch_key(job_id: str, attempt: int, unit: int) -> str:
    return f"{job_id}.{attempt}.{unit}"


class ProviderBatches:
    """The bucket's records."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def get(self, job_id: str, attempt: int, unit: int) -> tuple[BatchRecord | None, int]:
        """The record, None without one, and the position that the next write must name."""
        msg = await self._bus.kv_get(PROVIDER_BATCHES, batch_key(job_id, attempt, unit))
        if msg is None or msg.seq is None:
            return None, 0
        return BatchRecord.decode(msg.data or b""), msg.seq

    async def write(self, record: BatchRecord, expected: int) -> int | None:
        """Its position, or None if another evaluator has written since `expected`."""
        return await self._bus.kv_update(PROVIDER_BATCHES, record.key, record.encode(), expected)

    async def all(self) -> AsyncIterator[tuple[BatchRecord, int]]:
        """Every record that can be read, with its position."""
        async for _, msg in self._bus.kv_all(PROVIDER_BATCHES):
            # The scheduler sets aside anything but a record.
            with suppress(ValueError):
                yield BatchRecord.decode(msg.data), msg.metadata.sequence.stream
