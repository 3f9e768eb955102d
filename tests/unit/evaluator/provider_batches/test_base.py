"""Records of batches."""

from __future__ import annotations

import json

from services.bus import BatchRecord, BatchStage


def test_records_of_a_newer_version_are_read() -> None:
    record = BatchRecord("job", 1, 2, "openai", "mark", BatchStage.SENDING, rows=7)
    newer = json.dumps(json.loads(record.encode()) | {"colour": "red"}).encode()
    assert BatchRecord.decode(newer) == record
