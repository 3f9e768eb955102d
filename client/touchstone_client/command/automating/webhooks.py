"""`touchstone webhooks`: URLs that are called when jobs finish."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.jobs import WEBHOOK_EVENTS
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, group, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import moment, when
from touchstone_client.command.printing.output import Column, Report, Table, show

_COLUMNS = (
    Column("webhook_id", "webhook"),
    Column("url", "url"),
    Column("events", "events"),
    Column("project_id", "project", lambda number: str(number or "any")),
    Column("owner", "owner", extra=True),
    Column("created_at", "created", when, extra=True),
)
_DEAD = (
    Column("delivery_id", "delivery"),
    Column("url", "url"),
    Column("event", "event"),
    Column("job_id", "job"),
    Column("tries", "tries", right=True),
    Column("problem", "problem", fold=True),
    Column("last_try_at", "last try", when, extra=True),
)


def add(commands: Any) -> None:
    verbs = group(commands, "webhooks", "call URLs when jobs finish")
    parser = leaf(verbs, "list", "list your webhooks", _list)
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only those for this project's jobs")
    add_format(parser)
    parser = leaf(
        verbs,
        "create",
        "add a URL; prints its id, then the secret that signs the calls, which is shown only once",
        _create,
    )
    parser.add_argument("url")
    words = "may be repeated (default: all)"
    parser.add_argument("--event", choices=WEBHOOK_EVENTS, action="append", default=[], help=words)
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only jobs of this project")
    parser = leaf(verbs, "delete", "delete a webhook", _delete)
    parser.add_argument("webhook", help="a webhook's id")
    add_format(leaf(verbs, "dead", "list calls that were given up", _dead))
    parser = leaf(verbs, "redeliver", "try once more a call that was given up", _redeliver)
    parser.add_argument("delivery", help="a delivery's id")


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (w.webhook_id, w.url, list(w.events), w.project_id, w.owner, moment(w.created_at))
            for w in client.webhooks(options.project_id)
        ]
    show(Report([Table(_COLUMNS, rows)], notes=[] if rows else ["You have no webhooks."]), options.format)
    return DONE


def _create(options: argparse.Namespace) -> int:
    with Client() as client:
        made, secret = client.create_webhook(options.url, options.event, options.project_id)
    print(f"{made.webhook_id}\n{secret}")
    print("The second line is the secret. It is shown only now; keep it in a safe place.", file=sys.stderr)
    return DONE


def _delete(options: argparse.Namespace) -> int:
    with Client() as client:
        client.delete_webhook(options.webhook)
    print(f"{options.webhook} is deleted.")
    return DONE


def _dead(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (d.delivery_id, d.url, d.event, d.job_id, d.tries, d.problem, moment(d.last_try_at))
            for d in client.dead_deliveries()
        ]
    show(Report([Table(_DEAD, rows)], notes=[] if rows else ["No calls were given up."]), options.format)
    return DONE


def _redeliver(options: argparse.Namespace) -> int:
    with Client() as client:
        delivery = client.redeliver(options.delivery)
    print(f"{delivery.delivery_id} is being tried again.")
    return DONE
