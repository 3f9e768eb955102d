"""`touchstone export`: jobs, metrics or items as a file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.enums import EXPORT_FORMATS, EXPORT_KINDS, FORMATS_OF_KINDS, ITEM_FILTERS
from services.words.jobs import STATUSES, states_of
from services.words.refusals import counted
from touchstone_client.client import Client
from touchstone_client.command.arguments.conditions import add_conditions, conditions
from touchstone_client.command.arguments.declaring import Suggestions, days, leaf, of_files, project
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.requests import Export, JobFilters, recent
from touchstone_client.specs import OF_ITEMS


def add(commands: Any) -> None:
    words = "write jobs, metrics or items as CSV, JSON, JSONL or Parquet"
    parser = leaf(commands, "export", words, _export)
    words = "what each row is (batch: OpenAI's batch output; golden: examples for fine-tuning), or a job's id"
    parser.add_argument("what", choices=Suggestions(EXPORT_KINDS), metavar="KIND|JOB", help=words)
    parser.add_argument("--job", default="", help="the job; required for items, batch and golden")
    words = "with a job's id as the first argument: what each row is (default: items)"
    parser.add_argument("--kind", choices=[*EXPORT_KINDS], default="", help=words)
    words = "(default: csv; of batch and golden jsonl)"
    parser.add_argument("--format", choices=[*EXPORT_FORMATS], default="", help=words)
    of_files(parser.add_argument("--output", "-o", default="-", metavar="FILE", help="a file (default: stdout)"))
    parser.add_argument("--model", default="", help="of jobs and metrics: exact model id")
    parser.add_argument("--suite", default="", help="of jobs and metrics")
    parser.add_argument("--endpoint", default="", help="of jobs and metrics")
    parser.add_argument("--status", choices=STATUSES, action="append", default=[], help="of jobs and metrics")
    parser.add_argument("--owner", default="", metavar="USER", help="of jobs and metrics")
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="of jobs and metrics")
    parser.add_argument(
        "--days", type=days, default=0, metavar="N", help="of jobs and metrics: created in the last N days"
    )
    parser.add_argument("--filter", choices=[*ITEM_FILTERS], default="all", help="of items (default: all)")
    parser.add_argument("--baseline", default="", metavar="JOB", help="of items: a job to compare with")
    add_conditions(parser, "of items: ")


def _export(options: argparse.Namespace) -> int:
    kind, job = _kind_and_job(options)
    format = options.format or FORMATS_OF_KINDS.get(kind, ("csv",))[0]
    if format not in FORMATS_OF_KINDS.get(kind, EXPORT_FORMATS):
        options.parser.error(f"{kind} is written as {' or '.join(FORMATS_OF_KINDS[kind])}")
    to_stdout = options.output == "-"
    if to_stdout and format == "parquet" and sys.stdout.isatty():
        options.parser.error("parquet is not for a terminal: name a file with --output")
    with Client() as client:
        what = _what(client, options, job)
        if to_stdout:
            for piece in client.export(kind, format, **what):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        else:
            size = client.export_file(options.output, kind, format, **what)
            print(f"{options.output}: {counted(size, 'byte')}", file=sys.stderr)
    return DONE


def _kind_and_job(options: argparse.Namespace) -> tuple[str, str]:
    """Both orders: `export items --job JOB` and `export JOB --kind items`."""
    named = options.what in EXPORT_KINDS
    kind, job = (options.what, options.job) if named else (options.kind or "items", options.what)
    if named and options.kind not in ("", kind):
        options.parser.error(f"--kind is {options.kind}, but the first argument is {kind}")
    if not named and options.job:
        options.parser.error(f"two jobs are named: {job} and {options.job}")
    if kind in OF_ITEMS and not job:
        options.parser.error(f"{kind} need{'s' if kind != 'items' else ''} --job")
    if kind == "jobs" and job:
        options.parser.error("only items and metrics take a job")
    of_items = (*conditions(options).values(), options.baseline, options.filter != "all")
    if kind not in OF_ITEMS and any(of_items):
        options.parser.error("--task, --filter, --query, --baseline and similar options are only for items")
    return kind, job


def _what(client: Client, options: argparse.Namespace, job: str) -> Export:
    if job:
        items = conditions(options)
        items["filter"] = options.filter
        items["baseline_job_id"] = job_of(client, options.baseline) if options.baseline else ""
        return {"job_id": job_of(client, job), "items": items}
    filters: JobFilters = {
        "model": options.model,
        "suite": options.suite,
        "endpoint": options.endpoint,
        "owner": options.owner,
        "project_id": options.project_id,
        "states": [state for word in options.status for state in states_of(word)],
    }
    return {"jobs": recent(options.days, filters)}
