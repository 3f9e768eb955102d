"""Marks of what differs, in text, Markdown and colour."""

from __future__ import annotations

from touchstone_client.command.printing.marks import ADDED, REMOVED, Part, coloured, markdown, plain

DIFF = (Part("The capital is "), Part("Paris.", REMOVED), Part("Lyon. ", ADDED), Part("I | think"))


def test_marks_are_text_markdown_or_colour() -> None:
    assert plain(DIFF) == "The capital is [-Paris.-]{+Lyon.+} I | think"
    assert markdown(DIFF) == "The capital is ~~Paris.~~**Lyon.** I \\| think"
    made = coloured(DIFF, "")
    assert made.plain == "The capital is Paris.Lyon. I | think"
    assert {str(span.style) for span in made.spans if span.end > span.start} >= {"red strike", "green"}
