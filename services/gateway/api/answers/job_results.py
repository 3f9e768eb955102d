"""A job's results in addition to the API document's fields: its parameters, what it rests on, and the outcomes of its
items."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.api.answers.members import PRICES, prices
from services.gateway.api.answers.metrics import FIGURES, SOMETIMES, metric_body
from services.gateway.fields.schema import (
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
from services.gateway.reads.values import cost, tokens
from services.gateway.reads.values import members as parsed_members
from services.words.enums import OUTCOMES, WEIGHTINGS, mode_name, reading_name, weighting_name
from services.words.jobs import reused_without_digest
from touchstone.v1 import endpoint_pb2, job_pb2, metric_pb2


def asked(spec: job_pb2.JobSpec) -> dict[str, Any]:
    """The job's parameters. `reuse` is there only if stored answers are taken."""
    body: dict[str, Any] = {
        "mode": mode_name(spec.mode),
        "shots": spec.suite.shots,
        "repeats": max(1, spec.suite.repeats),
        "seed": spec.suite.seed,
        "stream": spec.stream,
        "reading": reading_name(spec.reading),
    }
    if spec.reuse.any_job:
        body["reuse"] = {"any_job": True, **({"without_digest": True} if spec.reuse.without_digest else {})}
    elif spec.reuse.job_id:
        body["reuse"] = {"job_id": spec.reuse.job_id, "rerun": [OUTCOMES.of(o) for o in spec.reuse.rerun]}
    elif spec.reuse.import_id:
        body["reuse"] = {"import_id": spec.reuse.import_id}
    return body


ASKED: dict[str, Schema] = {
    "mode": members.MODE,
    "shots": members.SHOTS,
    "repeats": members.REPEATS,
    "seed": about(INTEGER, "The seed of the sample and of sampled examples."),
    "stream": about(BOOLEAN, "Whether the job asks for streamed answers."),
    "reading": about(null(members.READING), "The layers that the job asks for. null means each task's own."),
    "reuse": about(
        shape(
            {
                "any_job": about(BOOLEAN, "Answers of any job to the same requests are taken."),
                "without_digest": about(BOOLEAN, "They are taken even if the digest of the weights is unknown."),
                "job_id": about(STRING, "The job whose answers are taken."),
                "rerun": about(array(enum(*OUTCOMES)), "The outcomes whose items are asked again."),
                "import_id": about(STRING, "The import whose answers are taken."),
            },
            optional=("any_job", "without_digest", "job_id", "rerun", "import_id"),
        ),
        "Which stored answers the job takes.",
    ),
}
"""Members of `asked`; `reuse` is there only if stored answers are taken."""


def receipt(receipt: job_pb2.Receipt) -> dict[str, Any]:
    """Every field; null for unknown ones. `parameters` is what requests carried, as an object."""
    return {
        "endpoint_kind": receipt.endpoint_kind or None,
        "server": receipt.server or None,
        "model_digest": receipt.model_digest or None,
        "software": receipt.software or None,
        "concurrency": receipt.concurrency or None,
        "configuration": receipt.configuration or None,
        "parameters": parsed_members(receipt.parameters),
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
        "endpoint_kind": about(null(STRING), "The provider kind of the endpoint."),
        "server": about(null(STRING), "The server's product and version."),
        "model_digest": about(null(STRING), "The digest of the model's weights."),
        "software": about(null(STRING), "Touchstone's version at the evaluator that planned the job."),
        "concurrency": about(null(COUNT), "Calls at once per evaluator."),
        "configuration": about(null(STRING), "A hash of everything that a leaderboard ranks."),
        "parameters": about(
            null(OBJECT), "What requests carried with the prompt, after the model's capabilities applied."
        ),
        "template": about(null(STRING), '"endpoint": its own chat template. "none" in mode `loglikelihood`.'),
        "setup": about(null(STRING), "A hash of an engine's command, or of an application's request."),
        "source_job": about(null(STRING), "The job whose answers were taken."),
        "capabilities": about(table(BOOLEAN), "What the model can do, by name."),
        "prices": about(null(PRICES), "The prices of the answers. null if they are not known."),
        "import_counts": about(
            null(
                shape(
                    {
                        "answers": about(COUNT, "Answers in the file."),
                        "unmatched": about(COUNT, "Answers that match no item."),
                        "unmatched_example": about(null(STRING), "What the first unmatched answer says of its item."),
                        "repeated": about(COUNT, "Further answers to an item. The first one counts."),
                    }
                )
            ),
            "How an imported file of answers was matched.",
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
        "plugin": plan.plugin or None,
        "reading": reading_name(plan.reading),
        "prompt_hash": plan.prompt_hash,
        "items": plan.items,
        "published_items": plan.published_items or None,
        "row_parameters": list(plan.row_parameters),
    }


DATA = shape(
    {
        "dataset": about(STRING, "The data set on the Hub, or the id of an uploaded one."),
        "config": about(STRING, "The data set's configuration on the Hub."),
        "split": about(STRING, "The split."),
        "revision": about(STRING, "The revision of the data."),
        "version": about(STRING, "The version of the task's prompt."),
        "scorer_version": about(STRING, "The version of the scorer. Runs of different versions are not compared."),
        "plugin": about(null(STRING), "The package of its suite or scorer, with the version. null if built in."),
        "reading": about(
            null(members.READING), "The layers by which answers are read. null if the task reads no text."
        ),
        "prompt_hash": about(STRING, "A hash of the prompt template."),
        "items": about(COUNT, "The number of items that the job runs."),
        "published_items": about(null(COUNT), "The number of items in the published split. null if unknown."),
        "row_parameters": about(array(STRING), "Parameters that rows of a dataset set themselves."),
    },
    name="TaskData",
)


def outcomes(counts: metric_pb2.OutcomeCounts) -> dict[str, dict[str, float]]:
    """Count and share of each outcome; nothing while no item is stored."""
    found = {field.name: getattr(counts, field.name) for field in counts.DESCRIPTOR.fields}
    total = sum(found.values())
    return {name: {"items": n, "share": n / total} for name, n in found.items()} if total else {}


_ENDED = shape(
    {"items": about(COUNT, "Answers with this outcome."), "share": about(SHARE, "Their share of all answers.")}
)
_MEANINGS = {
    "answered": "An answer was read.",
    "unparsed": "No answer could be read from the response.",
    "output_truncated": "The response was cut at the token limit before an answer.",
    "refused": "The provider refused or blocked it.",
    "input_truncated": "The prompt did not fit into the context.",
    "infrastructure_error": "The call failed after all retries. It is never scored.",
}
OUTCOME_COUNTS = shape(
    {word: about(_ENDED, _MEANINGS[word]) for word in OUTCOMES}, name="Outcomes", optional=tuple(OUTCOMES)
)
_QUANTILES = shape({"p50": about(NUMBER, "The median."), "p95": about(NUMBER, "The 95th percentile.")})
MEASURED: dict[str, Schema] = {
    "outcomes": about(OUTCOME_COUNTS, "How the items ended."),
    "averages": about(
        array(
            shape(
                {
                    "category": about(null(STRING), "The category of tasks. null means all tasks."),
                    "metric": members.METRIC_NAME,
                    "weighting": about(enum(*WEIGHTINGS), "What has equal weight in the average."),
                    "rule": about(enum("macro", "micro"), "An older name of `weighting`: micro is items, macro tasks."),
                    "tasks": about(COUNT, "The number of tasks that have the metric."),
                    **FIGURES,
                },
                name="Average",
                optional=SOMETIMES,
            )
        ),
        "The score over items and over tasks, by category and over all tasks.",
    ),
    "fields": about(
        array(
            shape(
                {
                    "task": members.TASK,
                    "field": about(
                        STRING, "A path in JSON, a property of a schema, a function, or `function.argument`."
                    ),
                    "answers": about(COUNT, "The answers whose row expects the field."),
                    "right": about(NUMBER, "How many of them have it right. Several in one answer count by share."),
                    "share": about(SHARE, "`right` as a share of `answers`."),
                },
                name="FieldResult",
            )
        ),
        "How answers were right by field, where the scorer judges fields. At most 200 fields.",
    ),
    "score_rule": about(null(STRING), "How the score is computed, in a sentence."),
    "weighting": about(
        members.WEIGHTING,
        "What has equal weight in the score, as the suite's authors report it. null for a single task.",
    ),
    "reused": about(
        shape(
            {
                "items": about(COUNT, "Reused answers."),
                "share": about(SHARE, "Their share of all answers."),
                "without_digest": about(
                    BOOLEAN, "Whether the digest of the weights was unknown, so that the model may have changed since."
                ),
            }
        ),
        "Answers that were taken from the store, without a call.",
    ),
    "served_models": about(
        array(STRING),
        "The models that answered, by the provider's word. Several mean that the model changed meanwhile.",
    ),
    "cost_usd": about(null(NUMBER), "US dollars for the answers that this job paid for. null if a price is not known."),
    "tokens": about(
        shape(
            {
                "input": members.INPUT_TOKENS,
                "output": members.OUTPUT_TOKENS,
                "reasoning": about(COUNT, "Tokens of reasoning, which `output` includes."),
                "input_untold": members.INPUT_UNTOLD,
                "output_untold": members.OUTPUT_UNTOLD,
            }
        ),
        "Sums over the answers whose provider reports tokens.",
    ),
    "latency_ms": about(_QUANTILES, "Milliseconds from a request to the whole answer."),
    "ttft_ms": about(null(_QUANTILES), "Milliseconds to the first token. null if answers were not streamed."),
    "mark": about(null(enum("invalidated", "superseded")), "The mark that takes the run out of rankings."),
    "mark_reason": about(null(STRING), "The reason that was given with the mark."),
    "superseded_by": about(null(STRING), "The job in its place."),
    "texts_dropped": about(null(STRING), "When the texts of its answers were deleted to free space."),
}
"""Members of `measured`."""


def measured(job: job_pb2.Job, result: metric_pb2.JobResult) -> dict[str, Any]:
    """Figures over all items. Times are in milliseconds; `ttft` is null if answers were not streamed."""
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
        "fields": [
            {
                "task": one.task,
                "field": one.field,
                "answers": one.answers,
                "right": one.right,
                "share": one.right / one.answers,
            }
            for one in result.fields
        ],
        "score_rule": result.score_rule or None,
        "weighting": weighting_name(result.weighting),
        "reused": {
            "items": result.items_reused,
            "share": result.items_reused / stored if stored else 0.0,
            "without_digest": reused_without_digest(job, result),
        },
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
        "title": about(STRING, "The task's title."),
        "category": about(null(STRING), "The task's category."),
        "beside": about(BOOLEAN, "Reported, not scored."),
        "items": about(COUNT, "The number of stored answers."),
        "outcomes": about(OUTCOME_COUNTS, "How they ended."),
    },
    name="TaskItems",
)


def task(result: metric_pb2.TaskResult) -> dict[str, Any]:
    """A task's items by outcome, and its role in its suite."""
    return {
        "title": result.title,
        "category": result.category or None,
        "beside": result.beside,
        "items": result.items,
        "outcomes": outcomes(result.outcomes),
    }
