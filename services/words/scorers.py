"""How answers are scored and read, in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, TypedDict

from services.words import enums, refusals
from services.words.fields import Choice, Field, Number, OpenChoice, Pattern, Switch, Text, TextList, declared
from touchstone.v1 import job_pb2, scoring_pb2

USUAL = "exact_match"
"""The scorer of rows whose dataset or job does not name one."""
SCORERS = {
    "exact_match": "exact match",
    "contains": "presence of the reference",
    "regex": "pattern match",
    "choice": "choice",
    "numeric": "number",
    "token_f1": "token F1",
    "rouge_l": "ROUGE-L",
    "json": "equal JSON fields",
    "tool_calls": "tool calls",
    "json_schema": "JSON schema",
    "judgement": "scores under a rubric",
}
USUAL_READINGS = {
    USUAL: scoring_pb2.READING_MARKED,
    "choice": scoring_pb2.READING_LENIENT,
    "numeric": scoring_pb2.READING_LENIENT,
}
"""Of scorers that look for the answer in a response: the layers that they take unless a job says otherwise."""
OF_FIELD = "field:"
"""Begins the names of an answer's statistics by field, which are from 0 to 1: "field:city"."""
MOST_FURTHER = 4
"""Scorers of one run after the first, which ranks."""
_LISTED = 6
"""The most choices and fields that are named."""


class ScoringOptions(TypedDict, total=False):
    """Named as in `touchstone.v1.Scoring`. An absent or None value has its default."""

    scorer: Annotated[
        str | None,
        OpenChoice(
            "The scorer. `exact_match` if absent. Plug-ins may offer more.",
            "Scored by",
            {name: name for name in SCORERS},
        ),
    ]
    reference_field: Annotated[
        str | None,
        Text(
            "The metadata field or column with the reference. The row's `reference` if absent.", "Reference field", 200
        ),
    ]
    group_field: Annotated[
        str | None,
        Text(
            "The metadata field or column whose equal values make a group of rows, which intervals and decisions "
            "count as one. That of the dataset if absent.",
            "Group field",
            200,
        ),
    ]
    tolerance: Annotated[
        float | None,
        Number(
            "For `numeric`: the largest difference that counts as equal. 0 if absent.",
            "Tolerance",
            0,
            1e12,
            scorers=("numeric",),
        ),
    ]
    tolerance_is_relative: Annotated[
        bool | None,
        Switch(
            "For `numeric`: whether the tolerance is relative to the reference.",
            "as a share of the reference",
            flag="tolerance",
            scorers=("numeric",),
        ),
    ]
    fields: Annotated[
        Sequence[str] | None,
        TextList(
            "For `json`: the fields to compare, as dotted paths. Those of the reference if absent.",
            "Fields",
            200,
            200,
            scorers=("json",),
        ),
    ]
    choices: Annotated[
        Sequence[str] | None,
        TextList(
            "For `choice`: the answers to choose from. The letters A to J if absent.",
            "Choices",
            200,
            80,
            least=2,
            scorers=("choice",),
        ),
    ]
    answer_pattern: Annotated[
        str | None,
        Pattern("A pattern (RE2) whose first group, or whole match, is the answer.", "Answer pattern"),
    ]
    answer_match: Annotated[
        str | None,
        Choice("Which match of the pattern is the answer. `last` if absent.", "Answer at", enums.ANSWER_MATCHES),
    ]
    schema: Annotated[
        str | None,
        Text(
            "For `json_schema`: the JSON Schema, as text. That of the row's `response_format` if absent, else its "
            "reference.",
            "Schema",
            64 * 1024,
            scorers=("json_schema",),
        ),
    ]
    rubric: Annotated[
        str | None,
        Text(
            "For `judgement`: the rubric by which the answer gives scores, as JSON.",
            "Rubric",
            12 * 1024,
            flag="scorer_rubric",
            scorers=("judgement",),
        ),
    ]


OPTIONS = declared(ScoringOptions, Field)


def takes(scorer: str, option: str) -> bool:
    """Whether a scorer reads an option."""
    scorers = OPTIONS[option].scorers
    return not scorers or scorer in scorers


def needs_references(scoring: scoring_pb2.Scoring) -> bool:
    """Whether only rows with a reference can be scored; a schema may come from a request or the scoring itself, and a
    judgement needs none."""
    return scoring.scorer not in ("json_schema", "judgement")


def scoring_of(options: Mapping[str, Any]) -> scoring_pb2.Scoring:
    """The message of options; None is left out. Raises KeyError for a word that a choice does not have."""
    given = {name: value for name in OPTIONS if (value := options.get(name)) is not None}
    for name, value in given.items():
        field = OPTIONS[name]
        # Which scorers plug-ins offer is known where the message goes.
        given[name] = field.words[value] if isinstance(field, Choice) and name != "scorer" else value
    return scoring_pb2.Scoring(**given)


def options_of(scoring: scoring_pb2.Scoring) -> dict[str, Any]:
    """The options that are set, as `scoring_of` takes them."""
    found: dict[str, Any] = {}
    for name, field in OPTIONS.items():
        value = getattr(scoring, name)
        if isinstance(field, Choice) and name != "scorer":
            value = next((word for word, known in field.words.items() if known == value), "")
        elif isinstance(field, TextList):
            value = list(value)
        if value:
            found[name] = value
    return found


def problem(scoring: scoring_pb2.Scoring, plugged: Collection[str] = ()) -> tuple[str, str]:
    """(option, sentence) for the first option that is out of its range; empty when none is. `plugged` are the scorers
    of plug-ins that running evaluators have. `services.patterns` checks the pattern itself."""
    if scoring.scorer and scoring.scorer not in SCORERS and scoring.scorer not in plugged:
        return "scorer", refusals.not_valid(scoring.scorer, "scorer", [*SCORERS, *sorted(plugged)])
    for name, field in OPTIONS.items():
        if sentence := field.problem(getattr(scoring, name), name):
            return name, sentence
    if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST and not scoring.answer_pattern:
        return "answer_match", "answer_match needs answer_pattern: it chooses one of its matches. Set both, or neither."
    return "", ""


def plain(scoring: scoring_pb2.Scoring) -> scoring_pb2.Scoring:
    """With its scorer named, and without options that the scorer does not read: equal ones give equal scores."""
    kept = scoring_pb2.Scoring()
    kept.CopyFrom(scoring)
    kept.scorer = scoring.scorer or USUAL
    if kept.answer_match == scoring_pb2.ANSWER_MATCH_LAST:
        kept.ClearField("answer_match")
    for option in OPTIONS:
        if not takes(kept.scorer, option):
            kept.ClearField(option)
    return kept


def further_problem(
    first: scoring_pb2.Scoring, further: Sequence[scoring_pb2.Scoring], plugged: Collection[str] = ()
) -> tuple[str, str]:
    """(path below the job's dataset, sentence) for the first further scorer that cannot be used after the first one;
    empty when all can. `plugged` as in `problem`."""
    if len(further) > MOST_FURTHER:
        return "further", f"A run takes at most {MOST_FURTHER} further scorers, not {len(further):,}."
    known = [_of_answers(first)]
    for place, scoring in enumerate(further):
        path = f"further[{place}]"
        option, sentence = problem(scoring, plugged)
        if sentence:
            return f"{path}.{option}", sentence
        if plain(scoring).scorer == "judgement":
            return path, "judgement reads the answers of a judge. It can only be the first scorer."
        if scoring.group_field not in ("", first.group_field):
            return f"{path}.group_field", "Groups of rows are those of the first scorer. Leave group_field out."
        if _of_answers(scoring) in known:
            return path, f"Two scorers are the same: {in_words(plain(scoring))}. Give each scorer once."
        known.append(_of_answers(scoring))
    return "", ""


def _of_answers(scoring: scoring_pb2.Scoring) -> scoring_pb2.Scoring:
    """As `plain`, without what does not change the score of an answer."""
    kept = plain(scoring)
    kept.ClearField("group_field")
    return kept


def prefixes(further: Sequence[scoring_pb2.Scoring]) -> list[str]:
    """Begin the names of the metrics and statistics of further scorers: "contains.", and "contains_2." for the second
    scorer of one name."""
    names = [plain(scoring).scorer for scoring in further]
    counts = [names[:place].count(name) + 1 for place, name in enumerate(names)]
    return [f"{name}_{count}." if count > 1 else f"{name}." for name, count in zip(names, counts, strict=True)]


def all_of_job(spec: job_pb2.JobSpec) -> list[scoring_pb2.Scoring]:
    """The scorers of a job over a dataset in order, as `plain`. Only the first ranks."""
    return [of_job(spec), *map(plain, spec.dataset.further)]


def of_job(spec: job_pb2.JobSpec) -> scoring_pb2.Scoring:
    """The first of a job over a dataset, as `plain`. Of another job the default."""
    work = spec.dataset
    asked = work.scoring
    if work.scorer and asked.scorer != work.scorer:
        asked = scoring_pb2.Scoring(scorer=work.scorer)
    return plain(asked)


def reading_of(spec: job_pb2.JobSpec, plan: job_pb2.TaskPlan) -> scoring_pb2.Reading:
    """Layers by which a task's answers were read. Plans of earlier versions do not say: they used the usual ones."""
    if plan.reading:
        return plan.reading
    usual_is_marked = spec.HasField("dataset") and of_job(spec).scorer == USUAL
    return scoring_pb2.READING_MARKED if usual_is_marked else scoring_pb2.READING_LENIENT


def layer(reading: scoring_pb2.Reading) -> str:
    """ "lenient"."""
    return enums.READINGS.of(reading)


def of_items(job: job_pb2.Job) -> str:
    """The scoring of a job's item set, if others over the same items differ; "" if none does."""
    if job.spec.HasField("dataset"):
        read = {job.spec.reading} - {scoring_pb2.READING_UNSPECIFIED}
    else:
        read = {plan.reading for plan in job.plan} & {scoring_pb2.READING_STRICT, scoring_pb2.READING_MARKED}
    named = " and ".join(layer(reading) for reading in sorted(read))
    return "; ".join(filter(None, (words(job.spec), f"answers read by the {named} layer" if named else "")))


def words(spec: job_pb2.JobSpec) -> str:
    """In one line; "" for a job that is not over a dataset."""
    if not spec.HasField("dataset"):
        return ""
    return "; also ".join(map(in_words, all_of_job(spec)))


def in_words(scoring: scoring_pb2.Scoring) -> str:
    """A scoring that is `plain`, in one line."""
    said = [SCORERS.get(scoring.scorer, scoring.scorer) + _details(scoring)]
    if scoring.reference_field:
        said.append(f"reference in “{scoring.reference_field}”")
    if scoring.group_field:
        said.append(f"rows in groups by “{scoring.group_field}”")
    if scoring.answer_pattern:
        first = "the first match of " if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST else ""
        said.append(f"answer taken by {first}“{scoring.answer_pattern}”")
    return "; ".join(said)


def _details(scoring: scoring_pb2.Scoring) -> str:
    if scoring.scorer == "numeric" and scoring.tolerance:
        share = f"{100 * scoring.tolerance:g} % of the reference"
        return f" within {share if scoring.tolerance_is_relative else f'{scoring.tolerance:g}'}"
    if scoring.scorer == "choice" and scoring.choices:
        return f" of {_listed(scoring.choices)}"
    if scoring.scorer == "judgement" and scoring.rubric:
        return f" {_version(scoring.rubric)}"
    if scoring.scorer == "json_schema" and scoring.schema:
        return f" {sha256(scoring.schema.encode('utf-8', 'replace')).hexdigest()[:8]}"
    if scoring.scorer == "json" and scoring.fields:
        return f" {_listed(scoring.fields)}"
    return ""


def _version(rubric: str) -> str:
    """Of a rubric as JSON; its hash where it has none."""
    try:
        return str(json.loads(rubric)["version"])
    except (ValueError, TypeError, KeyError):
        return sha256(rubric.encode("utf-8", "replace")).hexdigest()[:8]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
