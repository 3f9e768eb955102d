"""The scorer `json`: the fields of a JSON answer against those of the right one. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from services import json_values
from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.reading.prose.cleaning import strip_reasoning
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, by_field, mean
from services.evaluator.items.metrics import beside
from services.json_values import NOTHING

_TAG = re.compile(r"[ \t]*[A-Za-z0-9_+-]{0,16}[ \t]*\r?")
_BEGINS = re.compile(r"[{\[]")
_MOST_CHARACTERS = 1_000_000
_MOST_BLOCKS = 1000
_MOST_READ = 4_000_000
"""Characters that may be read in vain while looking for JSON within other text."""
_TRY = 100
"""Characters that are read in the time of one vain try."""
_LEFT_BEHIND = 2048
"""Characters before a try. Its error counts the lines in all of them."""
_DECODER = json.JSONDecoder(parse_constant=json_values.refuse)


def json_fields(read: Read | None, fields: Sequence[str]) -> Scorer:
    """The share of equal fields, and whether all are equal.

    The JSON is the whole response, or its last fenced block that holds some, or the last object or list in it, or what
    `read` finds. It compares the dotted paths of `fields` that the right answer has, else all its values that are not
    objects, however deep; fields that the right answer lacks do not count. Numbers are equal by value, texts exactly,
    lists in order. A right answer is an object, or a text that holds one.
    """

    def found(reply: Reply) -> Extraction:
        return read_json(reply, read)

    def right(value: Any) -> str:
        written = canonical(value) if isinstance(value, str) else json_values.written(value)
        if not written.startswith("{"):
            raise ValueError("is not a JSON object")
        if fields and not any(True for _ in _compared(json.loads(written), fields)):
            raise ValueError(f"has none of the fields {', '.join(fields)}")
        return written

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = json.loads(answer)
        judged = max((_judged(given, json.loads(right), fields) for right in answers), key=_share)
        share = _share(judged)
        return {"json_match": share, "correct": float(share == 1.0), **by_field(judged)}

    def unread(answers: Sequence[str]) -> Mapping[str, float]:
        return by_field(_judged(NOTHING, json.loads(answers[0]), fields))

    metrics = (mean("json_match", "json_match"), beside(mean("json_exact", "correct")))
    return Scorer("json", "json-1", metrics, ("json_match", "correct"), right, found, judge, unread=unread)


def read_json(reply: Reply, read: Read | None) -> Extraction:
    """The JSON in a response, as `json_fields` says where it is."""
    if read is None:
        return _read(strip_reasoning(reply.text))
    answer = read(reply)
    how = "none: what the answer pattern finds is not JSON" if answer.answer else answer.how
    written = canonical(answer.answer)
    return Extraction(written, answer.how if written else how)


def at(value: Any, path: str) -> Any:
    """The value at a dotted path: names may contain dots, and numbers are indices of lists. `NOTHING` where there is no
    value."""
    head, dot, rest = path.partition(".")
    if isinstance(value, list) and head.isdecimal() and int(head) < len(value):
        return at(value[int(head)], rest) if dot else value[int(head)]
    while isinstance(value, dict):
        if head in value and (found := at(value[head], rest) if dot else value[head]) is not NOTHING:
            return found
        if not dot:
            break
        name, dot, rest = rest.partition(".")
        head = f"{head}.{name}"
    return NOTHING


def _judged(given: Any, right: Any, fields: Sequence[str]) -> list[tuple[str, float]]:
    return [(name, float(json_values.equal(find(given), value))) for name, find, value in _compared(right, fields)]


def _share(judged: Sequence[tuple[str, float]]) -> float:
    return sum(value for _, value in judged) / len(judged)


def _compared(right: Any, fields: Sequence[str]) -> Iterator[tuple[str, Callable[[Any], Any], Any]]:
    """The name of each field, a finder of it in an answer, and its value in the right one."""
    if fields:
        for path in fields:
            if (value := at(right, path)) is not NOTHING:
                yield path, partial(at, path=path), value
    else:
        for names, value in _leaves(right, ()):
            yield ".".join(names), partial(_inside, names=names), value


def _leaves(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(value, dict) or not value:
        yield names, value
        return
    for name, inner in value.items():
        yield from _leaves(inner, (*names, name))


def _inside(value: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        value = value.get(name, NOTHING) if isinstance(value, dict) else NOTHING
    return value


def _read(text: str) -> Extraction:
    if len(text) > _MOST_CHARACTERS:
        return Extraction("", "none: the response is too long to be read as JSON")
    if answer := canonical(text):
        return Extraction(answer, "whole response is JSON")
    for block in reversed(text.split("```")[1::2][-_MOST_BLOCKS:]):
        tag, newline, code = block.partition("\n")
        if answer := canonical(code if newline and _TAG.fullmatch(tag) else block):
            return Extraction(answer, "JSON in the last fenced code")
    if answer := _last_inside(text):
        return Extraction(answer, "last JSON in the response")
    return Extraction("", "none: no JSON in the response")


def _last_inside(text: str) -> str:
    found, place, left = "", 0, _MOST_READ
    while left > 0 and (begins := _BEGINS.search(text, place)) is not None:
        start = begins.start()
        if start > _LEFT_BEHIND:
            text, start = text[start:], 0
        try:
            value, place = _DECODER.raw_decode(text, start)
            found = json_values.written(value)
        except (ValueError, RecursionError) as error:
            place = start + 1
            left -= _TRY + (error.pos if isinstance(error, json.JSONDecodeError) else len(text)) - start
    return found


def canonical(text: str) -> str:
    """The JSON text as `json_values.written`, empty for invalid JSON."""
    try:
        return json_values.written(_DECODER.decode(text.strip()))
    except (ValueError, RecursionError):
        return ""
