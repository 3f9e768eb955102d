"""Kinds of endpoints, as documented."""

from __future__ import annotations

import re
from pathlib import Path

from services.evaluator.endpoints.kinds import KINDS


def test_every_kind_is_in_the_table_of_the_documentation() -> None:
    text = (Path(__file__).parents[4] / "docs/endpoints.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", text.partition("```")[0])) == set(KINDS) - {"baseline"}
