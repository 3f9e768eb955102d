"""Whether jobs gave the same answer to a row, as SQL over the n-th job's prediction and response, `rn`.

Predictions say it. Where none was read from any answer, responses do, white space apart: most differ in their first
words, so that whole texts are seldom cleaned.
"""

from __future__ import annotations

_WHITE = ("' '", "chr(10)", "chr(9)", "chr(13)")
_BEGINNING, _COMPARED = 64, 12
"""Characters looked at first, and how many without white space tell texts apart."""


def sql(jobs: int) -> str:
    """True, or false; NULL where a job has no such row."""
    return "(" + " AND ".join(_alike("r0", f"r{number}") for number in range(1, jobs)) + ")"


def _alike(one: str, other: str) -> str:
    beginnings = [_black(f"left({row}.response, {_BEGINNING})") for row in (one, other)]
    parted = (
        f"left({beginnings[0]}, {_COMPARED}) <> left({beginnings[1]}, {_COMPARED}) "
        f"AND length({beginnings[0]}) >= {_COMPARED} AND length({beginnings[1]}) >= {_COMPARED}"
    )
    return (
        f"CASE WHEN {one}.prediction <> {other}.prediction THEN false WHEN {one}.prediction <> '' THEN true "
        f"WHEN {one}.response = {other}.response THEN true WHEN {parted} THEN false "
        f"ELSE {_black(f'{one}.response')} = {_black(f'{other}.response')} END"
    )


def _black(text: str) -> str:
    for white in _WHITE:
        text = f"replace({text}, {white}, '')"
    return text
