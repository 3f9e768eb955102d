"""`touchstone logs`: what the services logged about a job."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, add_job, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import moment
from touchstone_client.command.printing.output import Column, Report, Table, show

_COLUMNS = (
    Column("logged_at", "time"),
    Column("level", "level"),
    Column("source", "source", extra=True),
    Column("text", "text", fold=True),
)


def add(commands: Any) -> None:
    parser = leaf(commands, "logs", "show what the services logged about a job", _logs)
    add_job(parser)
    words = "the lowest level to show (default: info)"
    parser.add_argument("--level", choices=("info", "warning", "error"), default="info", help=words)
    add_format(parser)


def _logs(options: argparse.Namespace) -> int:
    with Client() as client:
        lines = client.logs(job_of(client, options.job), options.level)
        rows = [(moment(line.logged_at), line.level, line.source, line.text) for line in lines]
    show(Report([Table(_COLUMNS, rows)]), options.format)
    return DONE
