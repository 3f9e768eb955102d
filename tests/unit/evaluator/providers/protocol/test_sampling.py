"""What of a request is kept with its answer."""

from __future__ import annotations

from services.evaluator.providers.protocol.sampling import recorded


def test_fields_are_sorted_and_what_is_in_them_keeps_its_order() -> None:
    beside = {"top_p": 0.5, "format": {"z": 1, "a": 2}, "stop": ["ü"]}
    assert recorded(beside) == '{"format":{"z":1,"a":2},"stop":["ü"],"top_p":0.5}'
