"""The rule by which the record's authors read and judge an answer, in words: the record's README."""

from __future__ import annotations

import json
import re

_NAMED = tuple(map(re.compile, (r'"answer"\s*:\s*"([^"]*)"', r'"answer"\s*:\s*([^,\s]*)', r"answer\s*:\s*([^,\s]*)")))
_BOX = re.compile(r"\\boxed\{(\w+)\}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTIENT = re.compile(r"\s*(-?[\d.]+)\s*/\s*(-?[\d.]+)\s*")
_END = 30
"""Characters at the end of an output in which a box counts."""


def answer(task: str, model: str, output: str) -> str | None:
    """The answer in an output; None where there is none. On crux an empty text is one."""
    found = _first_object(output)
    value = found["answer"] if isinstance(found, dict) and "answer" in found else _after_name(output)
    if value is None or (value == "" and task != "crux"):
        box = _BOX.search(output) if "Llama-3.1" in model and "boxed" in output[-_END:] else None
        return box[1] if box else None
    return str(value)


def is_right(task: str, given: str, reference: str) -> bool:
    if task == "crux":
        return unquoted(given) == unquoted(reference)
    theirs, right = number(given), number(reference)
    return _plain(given) == _plain(reference) or (theirs is not None and theirs == right)


def number(text: str) -> float | None:
    """The first number of a text."""
    found = _NUMBER.search(_plain(text))
    return float(found[0]) if found else None


def numbers(text: str) -> list[float]:
    """All of them."""
    return [float(found) for found in _NUMBER.findall(text.replace(",", ""))]


def unquoted(text: str) -> str:
    """Without quotation marks around it, line breaks written out."""
    return text.replace("\n", "\\n").strip("'\"")


def _first_object(output: str) -> object:
    """The first text in balanced braces, as far as it is JSON."""
    depth = start = 0
    for place, sign in enumerate(output):
        if sign == "{":
            start = start if depth else place
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
            if not depth:
                try:
                    return json.loads(output[start : place + 1].replace("\n", ""))
                except ValueError:
                    return None
    return None


def _after_name(output: str) -> str | None:
    """What follows the name: in quotation marks, else up to a comma or blank."""
    return next((found[1] for form in _NAMED if (found := form.search(output))), None)


def _plain(text: str) -> str:
    """Without `$` and thousands' commas, a quotient as its value."""
    bare = text.replace("$", "").replace("#", "").replace(",", "").strip()
    quotient = _QUOTIENT.fullmatch(bare)
    try:
        return str(float(quotient[1]) / float(quotient[2])) if quotient else bare
    except (ValueError, ZeroDivisionError):
        return bare
