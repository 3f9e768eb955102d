"""`touchstone export`: jobs, metrics or items as a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import count, leaf
from touchstone_client.command.exits import DONE
from touchstone_client.requests import Export, JobFilters, recent
from touchstone_client.specs import EXPORT_FORMATS, EXPORT_KINDS, ITEM_FILTERS, STATES


def add(commands: Any) -> None:
    words = "write jobs, metrics or items as CSV, JSON, JSONL or Parquet"
    parser = leaf(commands, "export", words, _export)
    parser.add_argument("kind", choices=[*EXPORT_KINDS], help="what a row is")
    parser.add_argument("--job", default="", help="the job; needed for items")
    parser.add_argument("--format", choices=[*EXPORT_FORMATS], default="csv", help="(default: csv)")
    parser.add_argument("--output", "-o", default="-", metavar="FILE", help="a file (default: stdout)")
    parser.add_argument("--model", default="", help="of jobs and metrics: exact model id")
    parser.add_argument("--suite", default="", help="of jobs and metrics")
    parser.add_argument("--status", choices=[*STATES], action="append", default=[], help="of jobs and metrics")
    parser.add_argument("--owner", default="", metavar="USER", help="of jobs and metrics")
    parser.add_argument("--project-id", type=int, default=0, metavar="N", help="of jobs and metrics")
    parser.add_argument(
        "--days", type=count, default=0, metavar="N", help="of jobs and metrics: created in so many days"
    )
    parser.add_argument("--task", default="", help="of items")
    parser.add_argument("--filter", choices=[*ITEM_FILTERS], default="all", help="of items (default: all)")
    parser.add_argument("--query", default="", metavar="TEXT", help="of items: text that they contain")
    parser.add_argument("--baseline", default="", metavar="JOB", help="of items: a job to compare with")


def _export(options: argparse.Namespace) -> int:
    if options.kind == "items" and not options.job:
        options.parser.error("items need --job")
    if options.kind == "jobs" and options.job:
        options.parser.error("--job is for items and metrics")
    if options.kind != "items" and (options.task or options.query or options.baseline or options.filter != "all"):
        options.parser.error("--task, --filter, --query and --baseline are for items")
    to_stdout = options.output == "-"
    if to_stdout and options.format == "parquet" and sys.stdout.isatty():
        options.parser.error("parquet is not for a terminal: name a file with --output")
    what = _what(options)
    with Client() as client:
        if to_stdout:
            for piece in client.export(options.kind, options.format, **what):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        else:
            size = client.export_file(options.output, options.kind, options.format, **what)
            print(f"{options.output}: {size:,} bytes", file=sys.stderr)
    return DONE


def _what(options: argparse.Namespace) -> Export:
    if options.job:
        return {
            "job_id": options.job,
            "items": {
                "task": options.task,
                "filter": options.filter,
                "query": options.query,
                "baseline_job_id": options.baseline,
            },
        }
    filters: JobFilters = {
        "model": options.model,
        "suite": options.suite,
        "owner": options.owner,
        "project_id": options.project_id,
        "states": [state for word in options.status for state in STATES[word]],
    }
    return {"jobs": recent(options.days, filters)}
