"""`touchstone items`: single answers of a job."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice
from typing import Any

from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments import add_format, add_limit, leaf
from touchstone_client.command.documents import document, word
from touchstone_client.command.exits import DONE
from touchstone_client.command.figures import excerpt, text
from touchstone_client.command.output import Column, Report, Table, show
from touchstone_client.specs import ITEM_FILTERS

_COLUMNS = (
    Column("task", "task"),
    Column("item", "item", right=True),
    Column("repeat", "", right=True),
    Column("custom_id", ""),
    Column("outcome", "outcome"),
    Column("correct", "right", lambda value: text(None if value is None else value == 1)),
    Column("prediction", "prediction", lambda value: excerpt(value, 24)),
    Column("reference", "reference", lambda value: excerpt(value, 24)),
    Column("response", "response", excerpt, fold=True),
    Column("latency_ms", "ms", lambda value: f"{value:,.0f}", right=True, extra=True),
    Column("output_tokens", "tokens", right=True, extra=True),
    Column("error", ""),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "items", "list a job's items", _items)
    parser.add_argument("job", help="a job's id")
    parser.add_argument("--task", default="")
    words = "which ones; different, regressed and improved need --baseline (default: all)"
    parser.add_argument("--filter", choices=[*ITEM_FILTERS], default="all", help=words)
    words = "text that prompt, response, prediction or reference contains"
    parser.add_argument("--query", default="", metavar="TEXT", help=words)
    parser.add_argument("--baseline", default="", metavar="JOB", help="a job to compare with")
    parser.add_argument("--item", type=int, metavar="N", help="one item with whole texts; needs --task")
    parser.add_argument("--repeat", type=int, default=0, metavar="N", help="with --item: which answer")
    add_limit(parser, 50, "items")
    add_format(parser)


def _items(options: argparse.Namespace) -> int:
    if options.item is not None and not options.task:
        options.parser.error("--item needs --task")
    with Client() as client:
        if options.item is not None:
            show(one(client.item(options.job, options.task, options.item, options.repeat)), options.format)
            return DONE
        found = client.items(
            options.job,
            task=options.task,
            filter=options.filter,
            query=options.query,
            baseline_job_id=options.baseline,
        )
        rows = [_row(stored) for stored in islice(found, options.limit)]
    show(Report([Table(_COLUMNS, rows)]), options.format)
    return DONE


def _row(stored: results_service_pb2.StoredItem) -> Sequence[Any]:
    result = stored.result
    return (
        stored.task,
        result.item,
        result.repeat,
        result.custom_id,
        _outcome(result.outcome),
        dict(result.statistics).get("correct"),
        result.prediction,
        result.reference,
        result.response,
        result.latency_ms,
        result.output_tokens,
        result.error,
    )


def _outcome(outcome: item_result_pb2.Outcome) -> str:
    return word(item_result_pb2.Outcome.Name(outcome), "Outcome")


def one(stored: results_service_pb2.StoredItem) -> Report:
    """Everything that is known of one item."""
    known = document(stored)
    # 0 says that the answer was not streamed.
    known["result"]["ttft_ms"] = stored.result.ttft_ms or None
    flat = {"task": stored.task, "attempt": stored.attempt, "evaluator": stored.evaluator, **known["result"]}
    rows = [(name, value) for name, value in flat.items() if value not in ("", None, [], {})]
    columns = (Column("field", "field"), Column("value", "value", fold=True, whole=True))
    return Report([Table(columns, rows)], document=known)
