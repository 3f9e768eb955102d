"""Kinds of endpoints, as documented."""

from __future__ import annotations

import re
from pathlib import Path

from services.evaluator.endpoints.kinds import KINDS
from services.words.endpoints import LABELS


def test_every_kind_is_in_the_table_of_the_documentation() -> None:
    text = (Path(__file__).parents[4] / "docs/endpoints.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", text.partition("```")[0])) == set(KINDS) - {"baseline"}


def test_every_kind_has_the_label_that_sentences_and_forms_use() -> None:
    assert {kind: known.label for kind, known in KINDS.items()} == dict(LABELS)
