"""Texts of items and of lines that answer them, and whether a line is about another item than its id says. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from services.evaluator.datasets.task import AnyTask
from services.evaluator.imports.matching import plain, short
from services.evaluator.item_result import prompt_text
from services.evaluator.items.task import Item, Response
from touchstone.v1 import item_result_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer

TEXTS = ("question", "prompt")
"""Names in ImportedAnswer.row of what identifies an item apart from its id."""


def contradiction(task: AnyTask, item: Item, answer: ImportedAnswer) -> str:
    """Why an answer whose id names the item belongs to another one, as a sentence; "" if it fits.

    A text of the line must be one of the item's or part of one, or contain the longest. Without a text, the line's
    reference must be the item's, as far as it can be read: ids alone also fit lines with another numbering.
    """
    line = of_line(answer.row)
    ours = list(map(plain, texts(item)))
    said = [text for name in TEXTS if (text := plain(line.get(name, "")))]
    if said:
        longest = max(map(plain, item.fields.values()), key=len, default=plain(_question(item)))
        if any(longest in text or any(text in part for part in ours) for text in said):
            return ""
        return (
            f"The line is about another item: it says “{short(said[0])}”, but the item says “{short(_question(item))}”."
        )
    if (reference := line.get("reference")) and not item.custom_id:
        read = task.score(item, Response(reference))
        if read.outcome == item_result_pb2.OUTCOME_ANSWERED and read.statistics.get("correct") == 0.0:
            return f"The line is about another item: its reference is “{short(reference)}”, not “{item.reference}”."
    return ""


def asked_as_we_do(item: Item, answer: ImportedAnswer) -> bool:
    """The line has our prompt; or it has none and answers a dataset's row, which is the prompt."""
    if not answer.prompt:
        return bool(item.custom_id)
    return plain(answer.prompt) in {plain(text) for text in prompts(item)}


def shown_prompt(item: Item) -> str:
    """What is stored with an answer whose line has no prompt: the dataset's row, or the texts of the suite's row."""
    if item.custom_id:
        return prompt_text(item)
    return "\n\n".join(f"{name}:\n{text}" for name, text in item.fields.items())


def texts(item: Item) -> Iterator[str]:
    """Texts of the item's row, one by one and together; for a dataset, the row's last message."""
    yield from item.fields.values()
    yield "\n".join(item.fields.values()) or _question(item)


def prompts(item: Item) -> Iterator[str]:
    """The item's prompt as we send it, with and without roles."""
    yield prompt_text(item)
    yield "\n\n".join(message.content for message in item.messages)


def _question(item: Item) -> str:
    if item.fields:
        return next(iter(item.fields.values()))
    return item.messages[-1].content if item.messages else ""


def of_line(text: str) -> dict[str, str]:
    """What ImportedAnswer.row says, by name."""
    try:
        row = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in row.items() if isinstance(value, str)} if isinstance(row, dict) else {}
