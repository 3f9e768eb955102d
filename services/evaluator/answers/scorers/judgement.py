"""The scorer `judgement`: the scores that a judge's answer gives under a rubric. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from services import json_values
from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.reading.prose.cleaning import strip_reasoning
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, mean
from services.evaluator.items.metrics import beside
from services.words import judging_rows, rubrics
from touchstone.v1.dataset_pb2 import DatasetRow

_MOST_OBJECTS = 200
"""Places in one answer, from its end, where a JSON object may begin."""
_OTHER_FIRST = "the other answer stands first"
"""In place of a right answer. No rubric's version has spaces."""
_DECODER = json.JSONDecoder()


def judgement(read: Read | None, rubric_text: str) -> Scorer:
    """The judge's scores, each as a share of its scale, with their composite.

    They are in the last JSON object of the answer that names a criterion; it must give each criterion a valid score. An
    answer that does not is unparsed and has no statistics, so that a judge's failure moves no score. Where the judge
    compares two answers and the other one stands first, the shares are those of the other one, taken from 1. Rows need
    no reference. Raises ValueError for a rubric that cannot be used, with a clause that continues after it.
    """
    rubric = rubrics.parse(rubric_text)
    criteria = {criterion.name for criterion in rubric.criteria}

    def found(reply: Reply) -> Extraction:
        text = strip_reasoning(reply.text) if read is None else read(reply).answer
        for value in _objects(text):
            if criteria & value.keys():
                try:
                    return Extraction(json_values.written(rubrics.scores(rubric, value)), "scores in a JSON object")
                except ValueError as error:
                    return Extraction("", f"none: the judgement {error}")
        return Extraction("", "none: no JSON object with scores")

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        shares = rubrics.shares(rubric, json.loads(answer))
        if _OTHER_FIRST in answers:
            return {name: 1 - share for name, share in shares.items()}
        return shares

    def own(row: DatasetRow) -> Any:
        return _OTHER_FIRST if judging_rows.other_first(row.metadata) else rubric.version

    first, *others = rubrics.names(rubric)
    return Scorer(
        "judgement",
        f"judgement-1 {rubrics.digest(rubric)[:16]}",
        (mean(first, first), *(beside(mean(name, name)) for name in others)),
        (first, *others),
        str,
        found,
        judge,
        own=own,
        group=lambda row: judging_rows.group(row.custom_id, row.metadata),
        counts_unread=False,
    )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in a text, the last one first, each before the objects that are its values."""
    starts = [place for place, character in enumerate(text) if character == "{"]
    whole: list[dict[str, Any]] = []
    after = 0
    for start in starts[-_MOST_OBJECTS:]:
        if start >= after:
            with suppress(ValueError, RecursionError):
                value, after = _DECODER.raw_decode(text, start)
                whole.append(value)
    for value in reversed(whole):
        yield value
        yield from (inner for inner in value.values() if isinstance(inner, dict))
