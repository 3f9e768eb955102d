"""Texts of models and users are escaped on every page, and no template can switch that off."""

from __future__ import annotations

import re

from services.gateway.pages.templates import environment
from tests.unit.test_structure import ROOT

PRE = re.compile(r"<pre\b[^>]*>")
UNESCAPED = re.compile(r"\|\s*safe\b|autoescape\s+false|\|\s*forceescape\s+false")


def test_every_text_is_escaped() -> None:
    made = environment()
    hostile = "<script>alert(1)</script>\"' onload="
    assert made.from_string("{{ text }}").render(text=hostile).count("<") == 0
    assert made.from_string("<a title='{{ text }}'>").render(text=hostile).count("'") == 2


def test_no_template_leaves_a_text_unescaped() -> None:
    templates = list((ROOT / "web" / "templates").rglob("*.html"))
    assert len(templates) > 50
    assert [str(file) for file in templates if UNESCAPED.search(file.read_text())] == []


def test_htmx_ignores_texts_shown_as_they_are() -> None:
    """Should a text get past the escaping, no attribute in it would send a request."""
    found = [
        (file.name, tag)
        for file in (ROOT / "web" / "templates").rglob("*.html")
        for tag in PRE.findall(file.read_text())
    ]
    assert len(found) > 10
    assert [one for one in found if " hx-ignore" not in one[1]] == []
