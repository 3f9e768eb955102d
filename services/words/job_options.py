"""Options of a job, each declared once, and how they get into its specification. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from google.protobuf.message import Message

from services import further_fields
from services.words.enums import MODES, PRIORITIES, READINGS
from services.words.fields import (
    DOLLARS,
    INT32_MAX,
    INT64_MAX,
    Choice,
    Field,
    Number,
    Switch,
    TextList,
    TextTable,
    declared,
)
from services.words.sampling import PARAMETERS
from services.words.scorers import OPTIONS, options_of
from touchstone.v1 import job_pb2, scoring_pb2

MOST_SHOTS, MOST_REPEATS, MOST_BUDGET_USD = 100, 64, 1_000_000_000
MOST_MODEL = 300
"""Characters of a model's id."""


class JobOptions(TypedDict, total=False):
    """Options of every job. An absent or empty one has its default."""

    limit: Annotated[
        int,
        Number(
            "The most items per task, or rows: a seeded, nested sample. The 100 are among the 200.",
            "Items per task",
            1,
            INT32_MAX,
            place="work",
        ),
    ]
    seed: Annotated[
        int,
        Number(
            "The seed of the sample and of sampled examples. 0 if absent.",
            "Sample seed",
            -INT64_MAX - 1,
            INT64_MAX,
            place="work",
            flag="sample-seed",
        ),
    ]
    reading: Annotated[
        str,
        Choice(
            "The layers by which answers are read. Each task's own if absent. Not in mode `loglikelihood`.",
            "Reading",
            READINGS,
        ),
    ]
    stream: Annotated[
        bool, Switch("Asks for streamed answers, so that results have the time to the first token.", "Stream")
    ]
    sampling: Annotated[job_pb2.Sampling | None, Field("Sampling parameters.", "Sampling")]
    priority: Annotated[
        str,
        Choice(
            "The place in the queue: `high` if someone waits for it, `normal` for background, `low` for maintenance.",
            "Priority",
            PRIORITIES,
        ),
    ]
    project_id: Annotated[int, Number("A number to group jobs by. 0 means none.", "Project ID", 0, INT64_MAX)]
    time_limit_s: Annotated[
        int, Number("The most seconds that the job may run.", "Time limit", 1, INT32_MAX, flag="time-limit")
    ]
    webhook_url: Annotated[str, Field("An address that is called when the job is finished.", "Webhook")]
    any_job: Annotated[
        bool,
        Switch(
            "Takes the answers that any job had to the same request, instead of calls.",
            "Stored answers",
            place="reuse",
            flag="reuse",
        ),
    ]
    without_digest: Annotated[
        bool,
        Switch(
            "Takes stored answers even if the endpoint does not report the digest of the model's weights. You accept "
            "that the model may have changed since.",
            "I accept that the model may have changed",
            place="reuse",
            flag="reuse-without-digest",
        ),
    ]
    labels: Annotated[
        Mapping[str, str], TextTable("Your own notes by name, shown with the job.", "Labels", 16, 64, 512, flag="label")
    ]
    budget_usd: Annotated[
        float | None,
        Number(
            "The most that the job may cost, in US dollars. It needs known prices.",
            "Budget",
            0,
            MOST_BUDGET_USD,
            above=True,
            unit=DOLLARS,
        ),
    ]


class SuiteJobOptions(JobOptions, total=False):
    """Of a job over a suite."""

    tasks: Annotated[Iterable[str], TextList("Only these tasks of the suite.", "Tasks", 1000, 100, place="suite")]
    mode: Annotated[
        str,
        Choice(
            "Whether the model writes its answers or each choice is scored.", "Scored by", MODES, default="generate"
        ),
    ]
    shots: Annotated[
        int,
        Number(
            "Worked examples in each prompt, up to what the task has. 0 if absent.",
            "Shots",
            0,
            MOST_SHOTS,
            place="suite",
        ),
    ]
    repeats: Annotated[
        int,
        Number(
            "Answers per item. Scores are means over them. 0 and 1 both mean one.",
            "Answers per item",
            0,
            MOST_REPEATS,
            place="suite",
        ),
    ]


class DatasetJobOptions(JobOptions, total=False):
    """Of a job over a dataset."""

    scoring: Annotated[
        scoring_pb2.Scoring | None,
        Field("The scorer and its options, in place of the dataset's.", "Scoring", place="dataset"),
    ]
    further: Annotated[
        Sequence[scoring_pb2.Scoring],
        Field(
            "Further scorers with their options. Their metrics are reported, not scored: the first scorer ranks.",
            "Further scorers",
            rest="further_scorers",
            flag="further-scorer",
            place="dataset",
        ),
    ]
    provider_batch: Annotated[
        bool,
        Switch(
            "Sends the rows through the provider's own batch API, which is cheaper and slower.", "Provider's batch API"
        ),
    ]


SUITE = declared(SuiteJobOptions, Field)
DATASET = declared(DatasetJobOptions, Field)
ALL = SUITE | DATASET
NUMBERS = declared(SuiteJobOptions, Number)
LABELS = declared(JobOptions, TextTable)["labels"]


def fill(spec: job_pb2.JobSpec, options: Mapping[str, Any]) -> None:
    """Puts options into a specification whose suite or dataset is named. Empty ones are left out: their zero value is
    the default. Raises KeyError for a word that a choice does not have."""
    for name, field in (SUITE if spec.HasField("suite") else DATASET).items():
        value = options.get(name)
        if isinstance(field, Choice) and (word := value or field.default):
            value = field.words[word]
        if value:
            part, _ = place_of(spec, field)
            part.MergeFrom(type(part)(**{name: value}))


def place_of(spec: job_pb2.JobSpec, field: Field) -> tuple[Message, str]:
    """The part of a specification that holds the field, and the field's path, such as spec.suite.limit."""
    place = spec.WhichOneof("work") if field.place == "work" else field.place
    part: Message = getattr(spec, place) if place else spec
    return part, ".".join(filter(None, ("spec", place, field.name)))


def command_of(spec: job_pb2.JobSpec) -> str:
    """The shell command that queues a job with this specification. Empty for a job over other jobs' answers or
    imported ones, which asks no model, and for one that judges, whose rubric is a file. For that reason, judges are not
    part. Nor is the webhook: it was requested for that one job."""
    if spec.reuse.job_id or spec.reuse.import_id or spec.HasField("judging"):
        return ""
    fields = SUITE if spec.HasField("suite") else DATASET
    words = ["touchstone", "run"]
    words += ["--suite", spec.suite.suite] if spec.HasField("suite") else ["--dataset", spec.dataset.dataset_id]
    words += ["--endpoint", spec.endpoint, "--model", spec.model]
    for name, field in fields.items():
        if name not in ("sampling", "webhook_url", "scoring", "further"):
            part, _ = place_of(spec, field)
            words += _arguments(field, getattr(part, name))
    if spec.HasField("dataset"):
        words += _scorers(spec.dataset)
    for name, parameter in PARAMETERS.items():
        if spec.sampling.HasField(name):
            words += [parameter.flags[0], str(getattr(spec.sampling, name))]
    if custom := further_fields.fields(spec.sampling):
        words += ["--custom-config", json.dumps(custom, ensure_ascii=False)]
    return shlex.join(words)


def _arguments(field: Field, value: Any) -> Iterator[str]:
    """The field on the command line; nothing for an empty value."""
    if not value:
        return
    flag = field.flags[0]
    if isinstance(field, Switch):
        yield flag
    elif isinstance(field, TextTable):
        for name in sorted(value):
            yield from (flag, f"{name}={value[name]}")
    elif isinstance(field, TextList):
        yield from (flag, ",".join(value))
    elif isinstance(field, Choice):
        word = next((word for word, known in field.words.items() if known == value), "")
        if word != field.default:
            yield from (flag, word)
    else:
        yield from (flag, str(value))


def _scorers(work: job_pb2.DatasetWork) -> Iterator[str]:
    """How the rows of a dataset are scored: the first scorer by its own flags, further ones as JSON."""
    for name, value in options_of(work.scoring).items():
        if name == "tolerance" and work.scoring.tolerance_is_relative:
            yield from (OPTIONS[name].flags[0], f"{100 * work.scoring.tolerance:.12g}%")
        elif name != "tolerance_is_relative":
            text = ",".join(value) if isinstance(value, list) else str(value)
            yield from (OPTIONS[name].flags[0], text)
    for one in work.further:
        yield from (ALL["further"].flags[0], json.dumps(options_of(one), ensure_ascii=False))
