"""`touchstone logs`: what the services said about a job."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments import add_format, add_job, leaf
from touchstone_client.command.exits import DONE
from touchstone_client.command.figures import moment
from touchstone_client.command.job_ids import job_of
from touchstone_client.command.output import Column, Report, Table, show

_COLUMNS = (
    Column("logged_at", "time"),
    Column("level", "level"),
    Column("source", "source", extra=True),
    Column("text", "text", fold=True),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "logs", "show what the services logged about a job", _logs)
    add_job(parser)
    words = "this and graver ones (default: info)"
    parser.add_argument("--level", choices=("info", "warning", "error"), default="info", help=words)
    add_format(parser)


def _logs(options: argparse.Namespace) -> int:
    with Client() as client:
        lines = client.logs(job_of(client, options.job), options.level)
        rows = [(moment(line.logged_at), line.level, line.source, line.text) for line in lines]
    show(Report([Table(_COLUMNS, rows)]), options.format)
    return DONE
