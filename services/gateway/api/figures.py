"""What a job's results say beside the API document's fields: how it asked, what it rests on, how its items ended."""

from __future__ import annotations

import json
from typing import Any, Literal, Protocol

from services import numbers
from services.gateway.api.metrics import FIGURES, SOMETIMES, metric_body
from services.gateway.api.prices import PRICES, prices
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    SHARE,
    STRING,
    Schema,
    about,
    array,
    enum,
    null,
    shape,
    table,
)
from touchstone.v1 import endpoint_pb2, item_result_pb2, job_pb2, metric_pb2, scoring_pb2, suite_pb2

MODES = {"generate": suite_pb2.MODE_GENERATE, "loglikelihood": suite_pb2.MODE_LOGLIKELIHOOD}
MODE = enum(*MODES)
WEIGHTINGS = {"items": suite_pb2.WEIGHTING_ITEMS, "tasks": suite_pb2.WEIGHTING_TASKS}
WEIGHTING = null(enum(*WEIGHTINGS))
OUTCOMES = tuple(field.name for field in metric_pb2.OutcomeCounts.DESCRIPTOR.fields)
"""How an item may end."""
READINGS = {
    "strict": scoring_pb2.READING_STRICT,
    "marked": scoring_pb2.READING_MARKED,
    "lenient": scoring_pb2.READING_LENIENT,
}
"""Layers by which answers are read; each also takes what the ones before it take."""
READING = enum(*READINGS)
_MODE_NAMES = {number: name for name, number in MODES.items()}
_READING_NAMES = {number: name for name, number in READINGS.items()}
_WEIGHTING_NAMES = {number: name for name, number in WEIGHTINGS.items()}


def mode_name(mode: suite_pb2.Mode) -> str:
    return _MODE_NAMES.get(mode, "generate")


def reading_name(reading: scoring_pb2.Reading) -> str | None:
    """None for none in particular."""
    return _READING_NAMES.get(reading)


def weighting_name(weighting: suite_pb2.Weighting) -> str | None:
    """None where a single task makes a score up."""
    return _WEIGHTING_NAMES.get(weighting)


def asked(spec: job_pb2.JobSpec) -> dict[str, Any]:
    """How the job asks. `reuse` stands only where stored answers are taken."""
    body: dict[str, Any] = {
        "mode": mode_name(spec.mode),
        "shots": spec.suite.shots,
        "repeats": max(1, spec.suite.repeats),
        "seed": spec.suite.seed,
        "stream": spec.stream,
        "reading": reading_name(spec.reading),
    }
    if spec.reuse.any_job:
        body["reuse"] = {"any_job": True}
    elif spec.reuse.job_id:
        body["reuse"] = {"job_id": spec.reuse.job_id, "rerun": [outcome_name(o) for o in spec.reuse.rerun]}
    elif spec.reuse.import_id:
        body["reuse"] = {"import_id": spec.reuse.import_id}
    return body


ASKED: dict[str, Schema] = {
    "mode": MODE,
    "shots": about(COUNT, "Few-shot examples in a prompt."),
    "repeats": about(COUNT, "Answers per item."),
    "seed": about(INTEGER, "Of the sample and of sampled examples."),
    "stream": BOOLEAN,
    "reading": about(null(READING), "Layers by which answers are to be read; null for each task's own."),
    "reuse": shape(
        {"any_job": BOOLEAN, "job_id": STRING, "rerun": array(enum(*OUTCOMES)), "import_id": STRING},
        optional=("any_job", "job_id", "rerun", "import_id"),
    ),
}
"""Members of `asked`; `reuse` stands only where stored answers are taken."""


def parsed(written: str) -> Any:
    """What stored JSON says, null for none; a text that was cut is no JSON any more and stands as it is."""
    if not written:
        return None
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


class Priced(Protocol):
    """A message that may tell a cost."""

    @property
    def cost_usd(self) -> float: ...

    def HasField(self, field_name: Literal["cost_usd"], /) -> bool: ...  # noqa: N802 - protobuf's name


def members(written: str) -> dict[str, Any] | None:
    """A stored JSON object; None for none, and for one that was cut."""
    held = parsed(written)
    return held if isinstance(held, dict) else None


def cost(message: Priced) -> float | None:
    """US dollars. None also for what cannot be, which earlier versions took
    over from providers."""
    return numbers.job_usd(message.cost_usd) if message.HasField("cost_usd") else None


def tokens(counted: int, untold: int) -> int | None:
    """None where there are answers and none of them tells its tokens."""
    return None if untold and not counted else counted


def outcome_name(outcome: item_result_pb2.Outcome) -> str:
    """As in `outcomes`, e.g. "output_truncated"."""
    return item_result_pb2.Outcome.Name(outcome).removeprefix("OUTCOME_").lower()


def receipt(receipt: job_pb2.Receipt) -> dict[str, Any]:
    """Every field; null for what nobody told. `parameters` is what requests carried, as an object."""
    return {
        "endpoint_kind": receipt.endpoint_kind or None,
        "server": receipt.server or None,
        "model_digest": receipt.model_digest or None,
        "software": receipt.software or None,
        "concurrency": receipt.concurrency or None,
        "configuration": receipt.configuration or None,
        "parameters": members(receipt.parameters),
        "template": receipt.template or None,
        "setup": receipt.setup or None,
        "source_job": receipt.source_job or None,
        "capabilities": capabilities(receipt.capabilities),
        "prices": prices(receipt.prices) if receipt.HasField("prices") else None,
        "import_counts": _import_counts(receipt.import_counts) if receipt.HasField("import_counts") else None,
    }


def _import_counts(counts: job_pb2.ImportCounts) -> dict[str, Any]:
    return {
        "answers": counts.answers,
        "unmatched": counts.unmatched,
        "unmatched_example": counts.unmatched_example or None,
        "repeated": counts.repeated,
    }


RECEIPT = shape(
    {
        "endpoint_kind": null(STRING),
        "server": null(STRING),
        "model_digest": null(STRING),
        "software": null(STRING),
        "concurrency": null(COUNT),
        "configuration": about(null(STRING), "Hash of all that a leaderboard ranks."),
        "parameters": about(null(OBJECT), "What requests carried beside the prompt."),
        "template": null(STRING),
        "setup": null(STRING),
        "source_job": about(null(STRING), "Job whose answers were taken."),
        "capabilities": table(BOOLEAN),
        "prices": about(null(PRICES), "At which answers are charged; null where they are not known."),
        "import_counts": null(
            shape(
                {
                    "answers": COUNT,
                    "unmatched": about(COUNT, "Answers that match no item."),
                    "unmatched_example": about(null(STRING), "What the first of them says of its item."),
                    "repeated": about(COUNT, "Further answers to an item; the first one counts."),
                }
            )
        ),
    },
    name="Receipt",
)


def capabilities(known: endpoint_pb2.Capabilities) -> dict[str, bool]:
    return {field.name: value for field, value in known.ListFields()}


def data(plan: job_pb2.TaskPlan) -> dict[str, Any]:
    """What a task's score rests on."""
    return {
        "dataset": plan.data.dataset,
        "config": plan.data.config,
        "split": plan.data.split,
        "revision": plan.data.revision,
        "version": plan.version,
        "scorer_version": plan.scorer_version,
        "reading": reading_name(plan.reading),
        "prompt_hash": plan.prompt_hash,
        "items": plan.items,
        "published_items": plan.published_items or None,
        "row_parameters": list(plan.row_parameters),
    }


DATA = shape(
    {
        "dataset": STRING,
        "config": STRING,
        "split": STRING,
        "revision": STRING,
        "version": STRING,
        "scorer_version": STRING,
        "reading": about(null(READING), "Layers by which answers are read; null where none is looked for in a text."),
        "prompt_hash": STRING,
        "items": COUNT,
        "published_items": null(COUNT),
        "row_parameters": about(array(STRING), "Parameters that rows of a dataset ask for beside the receipt's."),
    },
    name="TaskData",
)


def outcomes(counts: metric_pb2.OutcomeCounts) -> dict[str, dict[str, float]]:
    """Count and share of each outcome; nothing while no item is stored."""
    found = {field.name: getattr(counts, field.name) for field in counts.DESCRIPTOR.fields}
    total = sum(found.values())
    return {name: {"items": n, "share": n / total} for name, n in found.items()} if total else {}


_ENDED = shape({"items": COUNT, "share": SHARE})
OUTCOME_COUNTS = shape(dict.fromkeys(OUTCOMES, _ENDED), name="Outcomes", optional=OUTCOMES)
_QUANTILES = shape({"p50": NUMBER, "p95": NUMBER})
MEASURED: dict[str, Schema] = {
    "outcomes": OUTCOME_COUNTS,
    "averages": array(
        shape(
            {
                "category": about(null(STRING), "null over all tasks."),
                "metric": STRING,
                "weighting": about(enum(*WEIGHTINGS), "What counts alike in it."),
                "rule": about(enum("macro", "micro"), "The same by older names: micro over items, macro over tasks."),
                "tasks": COUNT,
                **FIGURES,
            },
            name="Average",
            optional=SOMETIMES,
        )
    ),
    "score_rule": null(STRING),
    "weighting": about(
        WEIGHTING, "What counts alike in the score, as the suite's authors have it; null of a single task."
    ),
    "reused": shape({"items": COUNT, "share": SHARE}),
    "served_models": array(STRING),
    "cost_usd": about(null(NUMBER), "Of answers that this job paid for; null where a price is not known."),
    "tokens": shape(
        {
            "input": about(null(COUNT), "Of answers that tell it; null where none does."),
            "output": about(null(COUNT), "Of answers that tell it; null where none does."),
            "reasoning": COUNT,
            "input_untold": about(COUNT, "Answers whose provider does not tell how many tokens it read."),
            "output_untold": about(COUNT, "Answers whose provider does not tell how many it generated."),
        }
    ),
    "latency_ms": _QUANTILES,
    "ttft_ms": about(null(_QUANTILES), "Time to the first token; null where answers were not streamed."),
    "mark": about(null(enum("invalidated", "superseded")), "Why the run is out of rankings, if somebody took it out."),
    "mark_reason": null(STRING),
    "superseded_by": null(STRING),
    "texts_dropped": about(null(STRING), "When the texts of its answers were given up for room, if they were."),
}
"""Members of `measured`."""


def measured(result: metric_pb2.JobResult) -> dict[str, Any]:
    """Figures over all items. Times are in milliseconds; `ttft` is null where answers were not streamed."""
    stored = sum(getattr(result.outcomes, field.name) for field in result.outcomes.DESCRIPTOR.fields)
    streamed = result.ttft_p50_ms > 0
    return {
        "outcomes": outcomes(result.outcomes),
        "averages": [
            {
                "category": average.category or None,
                "metric": average.metric.metric,
                "weighting": weighting_name(average.weighting) or ("items" if average.rule == "micro" else "tasks"),
                "rule": average.rule,
                "tasks": average.tasks,
                **metric_body(average.metric),
            }
            for average in result.averages
        ],
        "score_rule": result.score_rule or None,
        "weighting": weighting_name(result.weighting),
        "reused": {"items": result.items_reused, "share": result.items_reused / stored if stored else 0.0},
        "served_models": list(result.served_models),
        "cost_usd": cost(result),
        "tokens": {
            "input": tokens(result.input_tokens, result.input_untold),
            "output": tokens(result.output_tokens, result.output_untold),
            "reasoning": result.reasoning_tokens,
            "input_untold": result.input_untold,
            "output_untold": result.output_untold,
        },
        "latency_ms": {"p50": result.latency_p50_ms, "p95": result.latency_p95_ms},
        "ttft_ms": {"p50": result.ttft_p50_ms, "p95": result.ttft_p95_ms} if streamed else None,
        "mark": result.mark or None,
        "mark_reason": result.mark_reason or None,
        "superseded_by": result.superseded_by or None,
        "texts_dropped": result.texts_dropped or None,
    }


TASK = shape(
    {
        "title": STRING,
        "category": null(STRING),
        "beside": about(BOOLEAN, "No part of the suite's score."),
        "items": about(COUNT, "Answers stored."),
        "outcomes": OUTCOME_COUNTS,
    },
    name="TaskItems",
)


def task(result: metric_pb2.TaskResult) -> dict[str, Any]:
    """A task's items by outcome, and where it stands in its suite."""
    return {
        "title": result.title,
        "category": result.category or None,
        "beside": result.beside,
        "items": result.items,
        "outcomes": outcomes(result.outcomes),
    }


def lost_calls(job: job_pb2.Job) -> int:
    """Calls, at most, that may be charged and tell no price; 0 of a job whose calls have none."""
    priced = job.progress.HasField("cost_usd") or job.spec.budget_usd
    return job.progress.lost_calls if priced else 0
