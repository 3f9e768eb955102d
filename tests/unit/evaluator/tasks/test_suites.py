"""Suites count the published items, at pinned commits."""

from __future__ import annotations

import pytest

from services.evaluator.suites import shipped


@pytest.mark.parametrize(
    ("suite", "counted", "whole"),
    [
        ("superglue", 8, 3270 + 56 + 100 + 4848 + 10000 + 277 + 638 + 104),
        ("gsm8k", 1, 1319),
        ("mmlu_pro", 14, 12032),
        ("arc", 2, 2376 + 1172),
        ("hellaswag", 1, 10042),
        ("bbh", 27, 6511),
    ],
)
def test_suite_counts_the_published_items(suite: str, counted: int, whole: int) -> None:
    scored = [definition for definition in shipped()[suite].definitions if not definition.beside]
    assert len(scored) == counted
    assert sum(definition.published_items for definition in scored) == whole


def test_every_hub_source_is_pinned_to_a_commit() -> None:
    for suite in shipped().values():
        for definition in suite.definitions:
            if suite.name != "demo":
                assert len(definition.source.revision) == 40, definition.task
                int(definition.source.revision, 16)
