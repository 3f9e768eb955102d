"""`touchstone items`: single answers of a job."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice
from typing import Any

from services.words import chat
from services.words.enums import ITEM_FILTERS, ITEM_ORDERS, OUTCOMES, VERDICTS
from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.conditions import add_conditions, conditions
from touchstone_client.command.arguments.declaring import add_format, add_job, add_limit, leaf, whole
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document, told
from touchstone_client.command.printing.figures import excerpt, score, text
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.printing.tasks import task_of
from touchstone_client.command.reports.scores import optional

_COLUMNS = (
    Column("task", "task"),
    Column("item", "item", right=True),
    Column("repeat", "", right=True),
    Column("custom_id", "row", lambda value: excerpt(value, 24) if value else ""),
    Column("outcome", "outcome"),
    Column("correct", "right", lambda value: text(None if value is None else value == 1)),
    Column("graded", "score", lambda value: "" if value is None else score(value), right=True, data=False),
    Column("score", ""),
    Column("verdict", "verdict", lambda value: value or ""),
    Column("prediction", "prediction", lambda value: excerpt(value, 24)),
    Column("reference", "reference", lambda value: excerpt(value, 24)),
    Column("response", "response", excerpt, fold=True),
    Column("latency_ms", "ms", lambda value: f"{value:,.0f}", right=True, extra=True),
    Column("output_tokens", "tokens", right=True, extra=True),
    Column("error", ""),
)
_CLASSES = (
    Column("reference", "reference"),
    Column("prediction", "prediction", lambda value: "another text" if value is None else value or "nothing was read"),
    Column("items", "items", right=True),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "items", "list a job's items", _items)
    add_job(parser)
    words = "which ones; different, regressed and improved need --baseline (default: all)"
    parser.add_argument("--filter", choices=[*ITEM_FILTERS], default="all", help=words)
    parser.add_argument("--baseline", default="", metavar="JOB", help="a job to compare with")
    add_conditions(parser)
    words = "by item, or slowest or longest answers first (default: item)"
    parser.add_argument("--order", choices=[*ITEM_ORDERS], default="item", help=words)
    words = "count all predictions by right answer instead; requires --task if the job has several"
    parser.add_argument("--classes", action="store_true", help=words)
    words = "one item with its full texts; requires --task if the job has several"
    parser.add_argument("--item", type=whole, metavar="N", help=words)
    parser.add_argument("--repeat", type=whole, default=0, metavar="N", help="with --item: which answer")
    add_limit(parser, 50, "items")
    add_format(parser)


def _items(options: argparse.Namespace) -> int:
    with Client() as client:
        job_id = job_of(client, options.job)
        if options.item is not None:
            task = task_of(client, job_id, options.task)
            show(one(client.item(job_id, task, options.item, options.repeat)), options.format)
            return DONE
        if options.classes:
            show(_classes(client.classes(job_id, task_of(client, job_id, options.task))), options.format)
            return DONE
        filters = conditions(options)
        filters["filter"] = options.filter
        if options.baseline:
            filters["baseline_job_id"] = job_of(client, options.baseline)
        rows = [_row(stored) for stored in islice(client.items(job_id, order=options.order, **filters), options.limit)]
    show(Report([Table(_COLUMNS, rows)], notes=[] if rows else ["No items match."]), options.format)
    return DONE


def _row(stored: results_service_pb2.StoredItem) -> Sequence[Any]:
    result = stored.result
    correct, counts = dict(result.statistics).get("correct"), optional(stored, "score")
    return (
        stored.task,
        result.item,
        result.repeat,
        result.custom_id,
        outcome_of(result.outcome),
        correct,
        counts if correct is None else None,
        counts,
        verdict_of(stored),
        result.prediction,
        result.reference,
        chat.answer_text(result.response, result.tool_calls),
        result.latency_ms,
        told(result, "output_tokens"),
        result.error,
    )


def _classes(counts: Sequence[results_service_pb2.ClassCount]) -> Report:
    rows = [(one.reference, one.prediction if one.HasField("prediction") else None, one.items) for one in counts]
    notes = [] if rows else ["The task has no classes: its right answers are many, or are not texts."]
    return Report([Table(_CLASSES, rows)], notes=notes)


def outcome_of(outcome: item_result_pb2.Outcome) -> str:
    return OUTCOMES.of(outcome)


def verdict_of(stored: results_service_pb2.StoredItem) -> str:
    """ "golden", "fix", "wrong"; empty without a verdict."""
    return VERDICTS.of(stored.annotation.verdict) if stored.annotation.verdict else ""


def one(stored: results_service_pb2.StoredItem) -> Report:
    """Everything that is known about one item."""
    known = document(stored)
    # 0 means that the answer was not streamed.
    known["result"]["ttft_ms"] = stored.result.ttft_ms or None
    flat = {
        "task": stored.task,
        "attempt": stored.attempt,
        "evaluator": stored.evaluator,
        "score": optional(stored, "score"),
        **known["result"],
        **(known["annotation"] if stored.annotation.verdict else {}),
    }
    rows = [(name, value) for name, value in flat.items() if value not in ("", None, [], {})]
    columns = (Column("field", "field"), Column("value", "value", fold=True, whole=True))
    return Report([Table(columns, rows)], document=known)
