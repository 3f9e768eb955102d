"""Which scorer a job asks for, and whether its options are valid. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from google.protobuf import json_format

from services.errors import InvalidRequestError
from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.first import read_first
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.scorers import (
    choices,
    json_fields,
    judgement,
    numbers,
    patterns,
    texts,
    tool_calls,
)
from services.evaluator.answers.scorers.scorer import WHOLE, Read, ReadFirst, Reply, Scorer, whole
from services.words import refusals
from services.words.scorers import USUAL, USUAL_READINGS, plain, problem
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, Scoring

NONE_PLUGGED: Mapping[str, Scorer] = MappingProxyType({})
_FIELD = "dataset.scoring"
_PLAIN: dict[str, Callable[[Read], Scorer]] = {
    "contains": texts.contains,
    "regex": patterns.regex,
    "token_f1": texts.token_f1,
    "rouge_l": texts.rouge_l,
}
_LAYERS = {name: Layer(reading) for name, reading in USUAL_READINGS.items()}
"""The most lenient layer of scorers that read an answer by layers, unless a job says otherwise."""
_PATTERN_VERSION = "pattern-2"
"""The version of reading by a pattern; it follows the scorer's own. Since 2, invented next questions are cut."""


def scorer(scoring: Scoring, reading: Layer | None = None, plugged: Mapping[str, Scorer] = NONE_PLUGGED) -> Scorer:
    """`reading` is the most lenient layer, by default the scorer's own; scorers without layers ignore it. `plugged`
    are those of plug-ins. Raises InvalidRequestError, as `check_scoring`."""
    scoring = plain(scoring)
    name = scoring.scorer
    option, sentence = problem(scoring, plugged)
    if sentence:
        raise InvalidRequestError(sentence, f"{_FIELD}.{option}")
    layer = reading or _LAYERS.get(name, Layer.LENIENT)
    if not scoring.answer_pattern:
        made = _made(name, scoring, None, layer, plugged)
        return made if made.layer is None else replace(made, first=_first_stated(made.read))
    try:
        last, first = (patterns.answer_reader(scoring.answer_pattern, first=first) for first in (False, True))
    except ValueError as error:
        raise InvalidRequestError(refusals.pattern(error), f"{_FIELD}.answer_pattern") from error
    by_first = _made(name, scoring, first, layer, plugged)
    made = by_first
    if scoring.answer_match != ANSWER_MATCH_FIRST:
        made = replace(_made(name, scoring, last, layer, plugged), first=by_first.read)
    return replace(made, version=f"{made.version} {_PATTERN_VERSION}")


def _made(name: str, scoring: Scoring, read: Read | None, layer: Layer, plugged: Mapping[str, Scorer]) -> Scorer:
    if name in plugged:
        own = plugged[name]
        return own if read is None else replace(own, read=read, first=None)
    try:
        if name == USUAL:
            return texts.exact_match(read, layer)
        if name == "choice":
            return choices.choice(read, layer, scoring.choices)
        if name == "numeric":
            return numbers.numeric(read, layer, scoring.tolerance, scoring.tolerance_is_relative)
        if name == "json":
            return json_fields.json_fields(read, scoring.fields)
        if name == "tool_calls":
            return tool_calls.tool_calls(read)
        if name == "json_schema":
            return _by_schema(read, scoring.schema)
        if name == "judgement":
            return _by_rubric(read, scoring.rubric)
    except ValueError as error:
        raise InvalidRequestError(f"{error}.", f"{_FIELD}.choices") from error
    return _PLAIN[name](read or whole)


def _by_schema(read: Read | None, schema: str) -> Scorer:
    from services.evaluator.answers.scorers import json_schema  # Late: it takes long to import, and few need it.

    try:
        return json_schema.json_schema(read, schema)
    except ValueError as error:
        raise InvalidRequestError(f"The schema {error}.", f"{_FIELD}.schema") from error


def _by_rubric(read: Read | None, rubric: str) -> Scorer:
    if not rubric:
        raise InvalidRequestError("The scorer judgement needs a rubric. Set rubric.", f"{_FIELD}.rubric")
    try:
        return judgement.judgement(read, rubric)
    except ValueError as error:
        raise InvalidRequestError(f"The rubric {error}.", f"{_FIELD}.rubric") from error


def _first_stated(read: Read) -> ReadFirst:
    """Reads a response as if the first "answer: …" counted."""

    def first(reply: Reply) -> Extraction | None:
        return read_first(reply.text, lambda said: _stated(read(replace(reply, text=said))))

    return first


def _stated(found: Extraction) -> Extraction:
    """Where the whole text was taken, nothing in it was stated as the answer."""
    return Extraction("", layers.NOTHING) if found.how == WHOLE else found


def check_scoring(scoring: Scoring, plugged: Mapping[str, Scorer] = NONE_PLUGGED) -> None:
    """Raises InvalidRequestError, with what to do, for an unknown scorer and for options that it cannot use. Options of
    other scorers are ignored. Takes well below a millisecond, except for patterns of a thousand characters."""
    scorer(scoring, plugged=plugged)


def canonical(scoring: Scoring, reading: Layer | None = None) -> str:
    """The same text for scorings that give the same scores: it names the usual scorer and leaves out options of other
    scorers. `reading` as in `scorer`; it is in the text only where it changes something."""
    kept = plain(scoring)
    if not kept.answer_pattern:
        kept.ClearField("answer_match")
    fields = json_format.MessageToDict(kept, preserving_proto_field_name=True)
    if reading is not None and not scoring.answer_pattern and _LAYERS.get(kept.scorer, reading) != reading:
        fields["reading"] = reading.name.lower()
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
