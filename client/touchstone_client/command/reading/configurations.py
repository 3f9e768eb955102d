"""`touchstone configurations`: what leaderboards rank, with names and aliases."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, group, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import moment, when
from touchstone_client.command.printing.output import Column, Report, Table, show

_COLUMNS = (
    Column("configuration", "configuration"),
    Column("model", "model"),
    Column("endpoint", "endpoint", extra=True),
    Column("name", "name", lambda name: name or ""),
    Column("alias", "alias", lambda alias: alias or ""),
    Column("suite", "suite", extra=True),
    Column("run_count", "runs", right=True),
    Column("job_id", "newest run"),
    Column("last_run_at", "at", when, extra=True),
)


def add(commands: Any) -> None:
    verbs = group(commands, "configurations", "name what leaderboards rank")
    parser = leaf(verbs, "list", "list configurations, newest run first", _list)
    parser.add_argument("--model", default="", help="exact model id")
    parser.add_argument("--named", action="store_true", help="only those with a name or an alias")
    parser.add_argument(
        "--project-id", type=project, default=0, metavar="N", help="only those with a run of this project"
    )
    add_format(parser)
    parser = leaf(verbs, "name", "give a configuration a name or an alias", _name)
    parser.add_argument("configuration", help="its hash, as `list` shows it")
    parser.add_argument("--name", help="letters, digits, . _ and -; an empty text removes it")
    parser.add_argument("--alias", help="a role that moves from one configuration to another, e.g. prod")


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (
                c.configuration,
                c.model,
                c.endpoint,
                c.name,
                c.alias,
                c.suite,
                c.run_count,
                c.job_id,
                moment(c.last_run_at),
            )
            for c in client.configurations(options.model, options.named, options.project_id)
        ]
    show(Report([Table(_COLUMNS, rows)]), options.format)
    return DONE


def _name(options: argparse.Namespace) -> int:
    if options.name is None and options.alias is None:
        options.parser.error("give --name, --alias or both")
    with Client() as client:
        named = client.name_configuration(options.configuration, options.name, options.alias)
    print(f"{named.configuration}: name {named.name or 'none'}, alias {named.alias or 'none'}")
    for other in named.alias_taken_from:
        print(f"The alias {named.alias} was taken from {other}.")
    return DONE
