"""How the rows of a file are read: as the uploader says, otherwise as the first row tells."""

from __future__ import annotations

import re
from typing import Any

from services.chat_requests.faults import RefusedError, quoted
from services.chat_requests.sampling import is_field
from services.results.datasets.files.opening import Container, Opened
from services.results.datasets.reading.promptfoo import Promptfoo, own_prompt
from services.results.datasets.reading.row import Row
from services.results.datasets.reading.scoring import References
from services.results.datasets.reading.shapes import SHAPES
from services.words import phrases
from services.words.enums import DATASET_FORMATS
from touchstone.v1.dataset_pb2 import Dataset

PROMPTFOO = Promptfoo()
SHAPE_OF = {shape.format: shape for shape in SHAPES}
_KINDS = SHAPE_OF | {PROMPTFOO.format: PROMPTFOO}
_OWN = ("prompt", "messages")
_ANSWERED = (Dataset.FORMAT_PROMPT_COMPLETION, Dataset.FORMAT_DPO)
"""Kinds that have a prompt of their own as plain lines do, and with it the right answer."""
_COLUMNS_SHOWN = 10
_MMLU_COLUMNS = 6


_NOT_READ: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("doc_id", "doc", "resps"),
        "The file has samples of lm-eval, which are answers, not questions. Import them: touchstone import FILE.",
    ),
    (
        ("ctx", "endings", "label"),
        "The rows are HellaSwag's. Run the suite hellaswag, or rename ctx to question, endings to choices and label to "
        "answer.",
    ),
    (
        ("message_id", "parent_id", "role"),
        'The file has single messages of OpenAssistant. Join each thread to one row: {"messages": [...]} with the '
        "roles user and assistant.",
    ),
    (
        ("message_tree_id", "prompt"),
        'The file has message trees of OpenAssistant. Write each thread that you want as one row: {"messages": '
        "[...]} with the roles user and assistant.",
    ),
)
"""Known rows that are not read: their names, and what to do."""


def told_by(opened: Opened, first: dict[str, Any], has_template: bool) -> Dataset.Format:
    """The form of rows of which this is the first. Raises RefusedError if several forms fit, or none does.

    JSON Lines with a prompt of their own are plain lines, unless their right answer is a completion or a chosen one and
    nothing else of them is what only plain lines have.
    """
    by_names = opened.container is Container.JSON_LINES
    if has_template:
        # Of lines and of tables with commas, templates take all columns, as they always did.
        if opened.container not in (Container.JSON_LINES, Container.CSV) and PROMPTFOO.fits(Row(first)):
            return PROMPTFOO.format
        return Dataset.FORMAT_CSV if opened.container is Container.CSV else Dataset.FORMAT_COLUMNS
    if "body" in first or {"method", "url"} <= first.keys():
        return Dataset.FORMAT_BATCH
    found = fitting(first)
    if not found and not isinstance(first.get("prompt"), str) and "messages" not in first:
        for names, what in _NOT_READ:
            if Row(first).has(*names):
                raise RefusedError(what)
    if by_names and any(name in first for name in _OWN):
        return (
            found[0] if len(found) == 1 and found[0] in _ANSWERED and not _has_fields(first) else Dataset.FORMAT_LINES
        )
    if len(found) == 1:
        return found[0]
    if found:
        words = " or ".join(DATASET_FORMATS.of(format_) for format_ in found)
        raise RefusedError(f"The rows can be read as {words}. Set format to the one that is right.", "format")
    if by_names or any(name in first for name in _OWN):
        return Dataset.FORMAT_LINES
    return Dataset.FORMAT_CSV if opened.container is Container.CSV else Dataset.FORMAT_COLUMNS


def _has_fields(line: dict[str, Any]) -> bool:
    """Whether a line has what is read of plain lines alone: a reference, or fields of a request."""
    return any(name in ("reference", "extra", "model") or is_field(name) for name in line)


def fitting(values: dict[str, Any]) -> list[Dataset.Format]:
    """The kinds that have the names of a row."""
    return [format_ for format_, shape in _KINDS.items() if shape.fits(Row(values))]


def readings(
    opened: Opened, first: dict[str, Any], references: References, has_template: bool
) -> dict[Dataset.Format, str]:
    """Every form that the first row allows, with what it would make of the row."""
    allowed = fitting(first)
    if has_template:
        allowed.append(Dataset.FORMAT_COLUMNS)
    if "body" in first:
        allowed.append(Dataset.FORMAT_BATCH)
    if any(first.get(name) is not None for name in _OWN):
        allowed.append(Dataset.FORMAT_LINES)
    return {format_: sentence(opened, format_, first, references, has_template) for format_ in allowed}


def sentence(
    opened: Opened, format_: Dataset.Format, values: dict[str, Any], references: References, has_template: bool
) -> str:
    """What the file is, and what of its rows becomes prompt and reference."""
    row = Row(values)
    named = references.field or "reference"
    if shape := _KINDS.get(format_):
        prompt = "" if has_template else own_prompt(opened.others)
        about = PROMPTFOO.about(row, prompt) if format_ == PROMPTFOO.format else shape.about(row)
        if references.field:
            about = f"{about.partition(', reference from')[0]}, reference from {named}"
    else:
        source = "the template"
        if format_ == Dataset.FORMAT_BATCH:
            source = "body"
        elif format_ == Dataset.FORMAT_LINES:
            source = next((name for name in _OWN if values.get(name) is not None), _OWN[0])
        about = f"prompt from {source}" + (f", reference from {named}" if references.field or named in values else "")
    what = " ".join(filter(None, (opened.container, opened.note)))
    return f"{what}, read as {phrases.ROWS_READ_AS[format_]}: {about}"


def no_template(names: list[str]) -> RefusedError:
    """For columns of no known kind."""
    if len(names) == _MMLU_COLUMNS and re.fullmatch("[A-D]", names[-1]):
        return RefusedError(
            "The first line is a question, as in MMLU's CSV files, which have no header. Add the line "
            "question,A,B,C,D,answer above it."
        )
    shown = ", ".join(quoted(name, 20) for name in names[:_COLUMNS_SHOWN]) or "none"
    example = quoted(names[0], 40)[1:-1] if names else "question"
    return RefusedError(
        "Columns need a template that builds the prompt, such as {{" + example + "}}. No known kind of rows has the "
        f"columns {shown}.",
        "template",
    )
