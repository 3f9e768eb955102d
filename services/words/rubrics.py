"""Rubrics: what answers are judged by, and what their scores count. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from google.protobuf import json_format

from services import json_values
from services.words import refusals
from touchstone.v1.rubric_pb2 import Rubric, RubricChoice, RubricCriterion

FIRST, TIE, SECOND = "first", "tie", "second"
"""What a judge that compares two answers can prefer: the one that stands first, neither, the one that stands second."""
COMPOSITE = "composite"
"""The weighted mean of a rubric's criteria, each as a share of its scale."""
MOST_CRITERIA, MOST_CHOICES, MOST_EXAMPLES = 12, 20, 20
MOST_JUDGES, MOST_REPEATS = 3, 10
"""Judges that a run may name, and judgements of each answer by one of them."""
FORM = "judgement"
"""The name under which an endpoint is asked for a judgement's form."""
MOST_BYTES = 12 * 1024
"""Of a rubric as JSON. It travels with every unit of a job."""
OUTSIDE_JUDGE = r"[A-Za-z0-9_.:/-]{1,100}"
"""The name of a judge outside Touchstone."""
OUTSIDE_JUDGE_RULE = "1 to 100 letters, digits and _ . : / -"
_VERSION = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_INSTRUCTIONS, _TEXT, _CHOICE = 8 * 1024, 4 * 1024, 80
_SCALE, _WEIGHT = 100, 1000.0
_USUAL_SCALE = (1, 5)
_NAMED = 1_500
"""Characters of the mistakes that are named: an error travels in a header."""
_LISTED = 20
"""The most scores that a schema lists. Not every provider takes the bounds of a number."""


_TEXT_FORM, _WHOLE, _NUMBER = "a text", "a whole number", "a number"
_SCORE = "a number or the name of a choice"
_RUBRIC = {
    "version": _TEXT_FORM,
    "instructions": _TEXT_FORM,
    "criteria": [
        {
            "name": _TEXT_FORM,
            "description": _TEXT_FORM,
            "lowest": _WHOLE,
            "highest": _WHOLE,
            "choices": [{"name": _TEXT_FORM, "value": _NUMBER}],
            "examples": [{"answer": _TEXT_FORM, "score": _SCORE, "why": _TEXT_FORM}],
            "weight": _NUMBER,
        }
    ],
}


Mistakes = list[tuple[str, str]]
"""Of a rubric: for each one its place, such as `criteria[0].weight`, and a clause that continues after "The rubric".
The place is empty where the whole is wrong."""


class RubricError(ValueError):
    """The rubric has mistakes. As a text, they continue after "The rubric", or after "It" from the second one on."""

    def __init__(self, mistakes: Mistakes, lines: Mapping[int, int] = MappingProxyType({})) -> None:
        """`lines` has the line of a mistake by its number, from 0, where it is known."""
        said = [f"{clause} (line {lines[n]:,})" if n in lines else clause for n, (_, clause) in enumerate(mistakes)]
        named = [one for place, one in enumerate(said) if not place or len("".join(said[: place + 1])) <= _NAMED]
        if left := len(said) - len(named):
            named.append(f"has {refusals.counted(left, 'further mistake')}")
        super().__init__(". It ".join(named))
        self.mistakes = mistakes


def parse(text: str) -> Rubric:
    """A rubric from its JSON. Raises RubricError."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise RubricError([("", f"has more than {MOST_BYTES:,} bytes; shorten its texts")])
    try:
        value = json_values.parsed(text)
    except ValueError as error:
        raise RubricError([("", str(error))]) from error
    if not isinstance(value, dict):
        raise RubricError([("", "is not a JSON object")])
    return of_value(value)


def of_value(value: Mapping[str, Any]) -> Rubric:
    """A rubric from an object with the names of `touchstone.v1.Rubric`. Raises RubricError."""
    rubric = Rubric()
    wrong: Mistakes = []
    fields = _formed(value, _RUBRIC, "", wrong)
    _require(wrong)
    try:
        json_format.ParseDict(fields, rubric)
    except (json_format.ParseError, TypeError, ValueError, RecursionError) as error:
        raise RubricError([("", f"has another form than docs/judges.md says: {error}"[:300])]) from error
    for criterion in rubric.criteria:
        if not (criterion.choices or criterion.lowest or criterion.highest):
            criterion.lowest, criterion.highest = _USUAL_SCALE
    _require([*_mistakes(rubric)])
    return rubric


def _require(wrong: Mistakes) -> None:
    """Raises RubricError if something is wrong."""
    if wrong:
        raise RubricError(wrong)


def _formed(value: Any, form: Any, path: str, wrong: Mistakes) -> Any:
    """The value in this form: an object with some of these names, a list of such values, a text, or a number. Scores
    of examples may be numbers, too. What has another form is left out, and `wrong` gets a clause with its place."""
    if isinstance(form, list):
        if not isinstance(value, list):
            wrong.append((path, f"has {_shown(value)} as {path}, which must be a list"))
            return []
        return [_formed(each, form[0], f"{path}[{place}]", wrong) for place, each in enumerate(value)]
    if isinstance(form, dict):
        if not isinstance(value, Mapping):
            wrong.append((path, f"has {_shown(value)} as {path}, which must be an object"))
            return {}
        inner = f"{path}." if path else ""
        for name in value:
            if name not in form:
                where = f" in {path}" if path else ""
                clause = f"has an unknown field {_shown(name)}{where}; allowed are {', '.join(form)}"
                wrong.append((f"{inner}{name}", clause))
        known = {name: each for name, each in value.items() if name in form and each is not None}
        return {name: _formed(each, form[name], f"{inner}{name}", wrong) for name, each in known.items()}
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if form == _SCORE and number:
        return f"{value:g}"
    if form == _WHOLE and number and value == int(value):
        return int(value)
    if isinstance(value, str) if form in (_TEXT_FORM, _SCORE) else form == _NUMBER and number:
        return value
    wrong.append((path, f"has {_shown(value)} as {path}, which must be {form}"))
    return None


def written(rubric: Rubric) -> str:
    """Its JSON, the same for equal ones."""
    fields = json_format.MessageToDict(rubric, preserving_proto_field_name=True)
    for criterion in fields.get("criteria", ()):
        # What a choice counts and where a scale ends is written also where it is 0.
        for choice in criterion.get("choices", ()):
            choice.setdefault("value", 0)
        if "choices" not in criterion:
            criterion.setdefault("lowest", 0)
            criterion.setdefault("highest", 0)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def digest(rubric: Rubric) -> str:
    """SHA-256 of what is written: scores under different digests are not compared."""
    return sha256(written(rubric).encode()).hexdigest()


def comparing(rubric: Rubric | None) -> Rubric:
    """The rubric by which a judge compares two answers: for each criterion it names the better one. Only the names,
    descriptions and weights of the criteria count. None: which answer is better."""
    if rubric is None:
        better = RubricCriterion(name="better", description="Which answer serves the person who asked better?")
        return comparing(Rubric(version="better-v1", criteria=[better]))
    shares = {FIRST: 1.0, TIE: 0.5, SECOND: 0.0}
    criteria = (
        RubricCriterion(
            name=one.name,
            description=one.description,
            weight=one.weight,
            choices=[RubricChoice(name=name, value=value) for name, value in shares.items()],
        )
        for one in rubric.criteria
    )
    return Rubric(version=rubric.version, instructions=rubric.instructions, criteria=criteria)


def names(rubric: Rubric) -> list[str]:
    """The names of its metrics. The first one is the score: the composite, or the only criterion."""
    found = [criterion.name for criterion in rubric.criteria]
    return found if len(found) == 1 else [COMPOSITE, *found]


def scores(rubric: Rubric, given: Mapping[str, Any]) -> dict[str, Any]:
    """The score of each criterion, in their order: a whole number of the scale, or a choice's name. Other names are
    left out. Raises ValueError, with a clause that continues after what gives them, for the first missing or invalid
    one."""
    found: dict[str, Any] = {}
    for criterion in rubric.criteria:
        if criterion.name not in given:
            raise ValueError(f"has no score for {criterion.name}")
        found[criterion.name] = _score(criterion, given[criterion.name])
    return found


def shares(rubric: Rubric, given: Mapping[str, Any]) -> dict[str, float]:
    """What `scores` count, from 0 to 1: of a scale the share between its ends, of a choice its value. With the
    composite where there are several criteria."""
    found = {criterion.name: share(criterion, given[criterion.name]) for criterion in rubric.criteria}
    if len(found) == 1:
        return found
    weights = [criterion.weight for criterion in rubric.criteria]
    if not any(weights):
        weights = [1.0] * len(weights)
    weighted = (weight * found[criterion.name] for weight, criterion in zip(weights, rubric.criteria, strict=True))
    return {COMPOSITE: math.fsum(weighted) / math.fsum(weights), **found}


def share(criterion: RubricCriterion, score: Any) -> float:
    """What one score of `scores` counts, from 0 to 1."""
    if criterion.choices:
        return next(choice.value for choice in criterion.choices if choice.name == score)
    return (int(score) - criterion.lowest) / (criterion.highest - criterion.lowest)


def on_scale(criterion: RubricCriterion, share: float) -> float:
    """The number of the scale of a share, or of a mean of shares; the share itself without a scale."""
    if criterion.choices:
        return share
    return criterion.lowest + share * (criterion.highest - criterion.lowest)


def schema(rubric: Rubric) -> dict[str, Any]:
    """The JSON Schema of a judgement: a reason, then each score."""
    properties: dict[str, Any] = {"reason": {"type": "string"}}
    for criterion in rubric.criteria:
        if criterion.choices:
            properties[criterion.name] = {"type": "string", "enum": [choice.name for choice in criterion.choices]}
        elif criterion.highest - criterion.lowest < _LISTED:
            allowed = list(range(criterion.lowest, criterion.highest + 1))
            properties[criterion.name] = {"type": "integer", "enum": allowed}
        else:
            properties[criterion.name] = {
                "type": "integer",
                "minimum": criterion.lowest,
                "maximum": criterion.highest,
            }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def allowed(criterion: RubricCriterion) -> str:
    """ "a whole number from 1 to 5", "one of: correct, wrong"."""
    if criterion.choices:
        return f"one of: {', '.join(choice.name for choice in criterion.choices)}"
    return f"a whole number from {criterion.lowest} to {criterion.highest}"


def _score(criterion: RubricCriterion, value: Any) -> Any:
    if criterion.choices:
        if value not in [choice.name for choice in criterion.choices]:
            raise ValueError(f"gives {criterion.name} the score {_shown(value)}; it must be {allowed(criterion)}")
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not criterion.lowest <= value <= criterion.highest or value != int(value):
        raise ValueError(f"gives {criterion.name} the score {_shown(value)}; it must be {allowed(criterion)}")
    return int(value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _mistakes(rubric: Rubric) -> Iterator[tuple[str, str]]:
    if not _VERSION.fullmatch(rubric.version):
        yield "version", 'needs a version such as "tip-v1": 1 to 64 letters, digits, _, . and -'
    yield from _text_mistakes(rubric.instructions, _INSTRUCTIONS, "instructions", "instructions")
    if not 1 <= len(rubric.criteria) <= MOST_CRITERIA:
        yield "criteria", f"needs between 1 and {MOST_CRITERIA} criteria; it has {len(rubric.criteria)}"
    known: set[str] = set()
    for number, criterion in enumerate(rubric.criteria):
        name, path = criterion.name, f"criteria[{number}]"
        if not _NAME.fullmatch(name) or name in (COMPOSITE, "reason"):
            yield (
                f"{path}.name",
                f"has a criterion {_shown(name)}; a name has 1 to 40 lower-case letters, digits and _, begins with a "
                f"letter, and is not {COMPOSITE} or reason",
            )
            continue
        if name in known:
            yield f"{path}.name", f"has two criteria {name}; give each its own name"
        known.add(name)
        yield from _criterion_mistakes(criterion, path)


def _criterion_mistakes(criterion: RubricCriterion, path: str) -> Iterator[tuple[str, str]]:
    name = criterion.name
    yield from _text_mistakes(criterion.description, _TEXT, f"the description of {name}", f"{path}.description")
    if not 0 <= criterion.weight <= _WEIGHT:
        clause = f"gives {name} a weight of {criterion.weight:g}; it must be between 0 and {_WEIGHT:,.0f}"
        yield f"{path}.weight", clause
    if criterion.choices:
        yield from _choice_mistakes(criterion, path)
    elif not -_SCALE <= criterion.lowest < criterion.highest <= _SCALE:
        yield (
            path,
            f"gives {name} a scale from {criterion.lowest} to {criterion.highest}; lowest must be below highest, both "
            f"between -{_SCALE} and {_SCALE}. Or give it choices",
        )
        return
    if len(criterion.examples) > MOST_EXAMPLES:
        clause = f"has {len(criterion.examples)} examples of {name}; at most {MOST_EXAMPLES} are allowed"
        yield f"{path}.examples", clause
    for number, example in enumerate(criterion.examples):
        inner = f"{path}.examples[{number}]"
        yield from _text_mistakes(example.answer, _TEXT, f"an example of {name}", f"{inner}.answer")
        yield from _text_mistakes(example.why, _TEXT, f"an example of {name}", f"{inner}.why")
        given: Any = example.score
        if not criterion.choices:
            if not re.fullmatch(r"-?[0-9]{1,3}", example.score):
                score = f"the score {_shown(example.score)}; it must be {allowed(criterion)}"
                yield f"{inner}.score", f"has an example of {name} with {score}"
                continue
            given = int(example.score)
        try:
            _score(criterion, given)
        except ValueError as error:
            yield f"{inner}.score", f"has an example that {error}"


def _choice_mistakes(criterion: RubricCriterion, path: str) -> Iterator[tuple[str, str]]:
    name, choices = criterion.name, criterion.choices
    if criterion.lowest or criterion.highest:
        yield path, f"gives {name} a scale and choices; give it one of them"
    if not 2 <= len(choices) <= MOST_CHOICES:
        clause = f"gives {name} {refusals.counted(len(choices), 'choice')}; it needs 2 to {MOST_CHOICES}"
        yield f"{path}.choices", clause
    if len({choice.name for choice in choices}) < len(choices):
        yield f"{path}.choices", f"gives {name} two choices of one name"
    for number, choice in enumerate(choices):
        inner = f"{path}.choices[{number}]"
        if not 1 <= len(choice.name) <= _CHOICE or not choice.name.isprintable():
            clause = f"gives {name} a choice without a name of 1 to {_CHOICE} printable characters"
            yield f"{inner}.name", clause
        if not 0 <= choice.value <= 1:
            yield (
                f"{inner}.value",
                f"values {_shown(choice.name)} of {name} at {choice.value:g}; it must be from 0 to 1",
            )


def _text_mistakes(text: str, most: int, what: str, path: str) -> Iterator[tuple[str, str]]:
    if len(text.encode("utf-8", "replace")) > most:
        yield path, f"has more than {most:,} bytes in {what}; shorten it"
    if "\0" in text:
        yield path, f"has a NUL character in {what}; remove it"
