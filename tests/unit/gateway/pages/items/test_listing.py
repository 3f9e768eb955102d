"""Items of a page."""

from __future__ import annotations

from services.gateway.pages.items.rows import _shared


def test_rows_leave_out_what_all_prompts_begin_with() -> None:
    texts = ["Is this acceptable? Sentence: the cat sat", "Is this acceptable? Sentence: the dog ran"]
    assert texts[0][_shared(texts) :] == "cat sat"
    assert _shared(["same", "same"]) == 0
    assert _shared(["one"]) == 0
