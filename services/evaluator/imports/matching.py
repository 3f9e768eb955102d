"""Whether an imported answer belongs to our item, and what it says. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from services import numbers
from services.evaluator.item_result import prompt_text
from services.evaluator.items.task import Continuation, Item, Response
from services.words.refusals import counted
from touchstone.v1.results_service_pb2 import ImportedAnswer

_BETWEEN = "\x1e"
_SHOWN_CHARACTERS = 60
_FILTERED = "content_filter"
_LETTER = re.compile("[A-Z]")
_DEEPEST = 20
"""Levels of a row that are searched."""


def prompts_number(prompt: str, continuations: Sequence[str]) -> int:
    """As GetImportResponse.prompts says."""
    whole = _BETWEEN.join([prompt, *continuations])
    return int.from_bytes(hashlib.sha256(whole.encode("utf-8", "replace")).digest()[:8], "big")


def prompts_of(item: Item) -> int:
    """The number of the prompt that we would send."""
    return prompts_number(prompt_text(item), item.choices)


def asked_as_we_do(item: Item, answer: ImportedAnswer) -> bool:
    """The tool sent the very prompt, and the very continuations, that we would send."""
    same = [continuation.text for continuation in answer.continuations] == list(item.choices)
    return same and answer.prompt == prompt_text(item)


def prompt_hash(answer: ImportedAnswer) -> str:
    """The hash of a prompt that is not ours."""
    return f"{prompts_number(answer.prompt, [c.text for c in answer.continuations]):016x}"


def disagreement(item: Item, answer: ImportedAnswer) -> str:
    """Why the answer does not belong to the item, as a sentence; "" when it does.

    Every text of our row must be in the tool's: under the same name if it has that, else somewhere in its row, its
    prompt or its continuations. White space does not count.
    """
    if asked_as_we_do(item, answer):
        return ""
    row = _row(answer.row)
    texts = [*_texts(row), answer.prompt, *(continuation.text for continuation in answer.continuations)]
    said = _BETWEEN.join(map(plain, texts))
    for name, text in item.fields.items():
        ours = plain(text)
        theirs = row.get(name)
        if isinstance(theirs, str | int | float):
            if plain(str(theirs)) != ours:
                return f"The log's row differs: its {name} is “{short(str(theirs))}”, not “{short(text)}”."
        elif ours not in said:
            return f"The log's row differs: “{short(text)}” ({name}) is missing."
    if not any(map(plain, item.fields.values())):
        return "The row has no texts to compare, and its prompt differs."
    return "" if _in_order(item, plain(answer.prompt)) else "The log lists the options in a different order."


def response(item: Item, answer: ImportedAnswer) -> Response:
    """The answer as our scorers read it. Raises ValueError when its continuations are not our item's choices."""
    return Response(
        answer.response,
        finish_reason=answer.finish_reason,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        latency_ms=answer.latency_ms,
        refused=answer.finish_reason == _FILTERED,
        continuations=_ordered(item.choices, answer) if item.choices else (),
        reasoning=answer.reasoning,
        reasoning_tokens=answer.reasoning_tokens,
        tool_calls=tuple(answer.tool_calls),
        ttft_ms=answer.ttft_ms,
        cost_usd=answer.cost_usd if answer.HasField("cost_usd") else None,
        served_model=answer.served_model,
    )


def _ordered(choices: Sequence[str], answer: ImportedAnswer) -> tuple[Continuation, ...]:
    """By their texts where these differ, else in order."""
    given = [Continuation(c.text, c.loglikelihood, c.tokens, c.greedy) for c in answer.continuations]
    if not all(one.loglikelihood <= numbers.MOST_LOG_PROBABILITY for one in given):
        raise ValueError("The log has an impossible log-likelihood.")
    if len(given) != len(choices):
        raise ValueError(
            f"The log has {counted(len(given), 'continuation')}, but the item has {counted(len(choices), 'choice')}."
        )
    by_text = {plain(continuation.text): continuation for continuation in given}
    wanted = [plain(choice) for choice in choices]
    if len(set(wanted)) == len(by_text) == len(given) and set(wanted) == set(by_text):
        return tuple(by_text[text] for text in wanted)
    return tuple(given)


def _in_order(item: Item, prompt: str) -> bool:
    """A prompt must list options in our order, or the answer's letter would mean another one."""
    options = [plain(text) for name, text in item.fields.items() if _LETTER.fullmatch(name)]
    if item.choices or not all(option in prompt for option in options):
        return True
    others = [plain(text) for name, text in item.fields.items() if not _LETTER.fullmatch(name)]
    # Searched after the last of the question's texts: examples before it have options, too.
    place = max((prompt.rfind(text) + len(text) for text in others if text in prompt), default=0)
    for option in options:
        found = prompt.find(option, place)
        if found < 0:
            return False
        place = found + len(option)
    return True


def _row(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part, depth + 1)


def plain(text: str) -> str:
    """White space does not count."""
    return " ".join(text.split())


def short(text: str) -> str:
    """One line, for sentences."""
    line = plain(text)
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"
