"""`touchstone recorded-runs`: calls through `/v1` that were recorded under a name."""

from __future__ import annotations

import argparse
from typing import Any

from services.words.jobs import status_of
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, group, leaf
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import dollars, moment, size, when
from touchstone_client.command.printing.output import Column, Report, Table, show

_COLUMNS = (
    Column("name", "name"),
    Column("calls", "calls", right=True),
    Column("failed", "failed", right=True),
    Column("unfinished", "under way", right=True, extra=True),
    Column("models", "models", ", ".join, fold=True),
    Column("cost_usd", "cost", dollars, right=True),
    Column("bytes", "size", size, right=True, extra=True),
    Column("opened_at", "since", when, extra=True),
    Column("last_call_at", "last call", when),
    Column("run_id", ""),
)
_JOBS = (
    Column("job_id", "job"),
    Column("model_name", "model"),
    Column("endpoint", "endpoint"),
    Column("status", "status"),
    Column("dataset_id", "dataset"),
)


def add(commands: Any) -> None:
    verbs = group(commands, "recorded-runs", "turn recorded calls into jobs")
    words = "list your open ones, newest first"
    more = "Lists your open recorded runs, newest first. The header X-Touchstone-Run of a call begins one."
    add_format(leaf(verbs, "list", words, _list, more))
    words = "make a dataset of its requests and a job of each model's answers"
    parser = leaf(verbs, "close", words, _close, "Closes a recorded run. Closing again shows the same jobs.")
    _add_name(parser)
    add_format(parser)
    more = "Deletes what an open run has recorded. A closed one is deleted with its dataset: touchstone dataset delete."
    _add_name(leaf(verbs, "delete", "delete what an open run has recorded", _delete, more))


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name in the header X-Touchstone-Run")


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (
                run.name,
                run.calls,
                run.failed,
                run.unfinished,
                list(run.models),
                run.cost_usd,
                run.bytes,
                moment(run.opened_at),
                moment(run.last_at),
                run.run_id,
            )
            for run in client.recorded_runs()
        ]
    show(Report([Table(_COLUMNS, rows)], notes=[] if rows else ["You have no open recorded runs."]), options.format)
    return DONE


def _close(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (
                job.job_id,
                job.spec.model,
                job.spec.labels.get("endpoint", ""),
                status_of(job.state),
                job.spec.dataset.dataset_id,
            )
            for job in client.close_recorded_run(options.name)
        ]
    show(Report([Table(_JOBS, rows)]), options.format)
    return DONE


def _delete(options: argparse.Namespace) -> int:
    with Client() as client:
        run = client.delete_recorded_run(options.name)
    print(f"What {run.name} has recorded is deleted.")
    return DONE
