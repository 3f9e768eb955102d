"""Reasons why a line is refused."""

from __future__ import annotations

from tests.unit.results.uploads import jsonl, upload


def test_reasons_are_short_and_can_be_shown() -> None:
    hostile = "<b>\x1b[31m\u202e\n" + "x" * 500
    made = upload(jsonl({"prompt": "a", "custom_id": hostile[:400]}, {"prompt": "b", "custom_id": hostile[:400]}))
    reason = made.reasons[2]

    assert len(reason) <= 300
    assert reason.isprintable()
