"""`touchstone schedules`: jobs that are created again and again, and decisions."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.words.jobs import suite_of
from touchstone.v1 import schedule_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.deciding import add_decision, decision_specs
from touchstone_client.command.arguments.declaring import add_format, group, leaf, project
from touchstone_client.command.arguments.sampling import add_how, add_what, spec_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.figures import moment, when
from touchstone_client.command.printing.output import Column, Report, Table, show

_MORE = """Each time, a decision asks the models the same items, in a new random order, and stops as soon as it is known
whether the candidate is better or worse than the baseline, equivalent within a margin, or unlikely to be shown to
differ. No decision starts while the last one has not ended. `decisions --schedule ID` lists what they found."""
_COLUMNS = (
    Column("schedule_id", "schedule"),
    Column("label", "label", extra=True),
    Column("cron", "cron"),
    Column("time_zone", "time zone", extra=True),
    Column("model_name", "model"),
    Column("endpoint", "endpoint", extra=True),
    Column("benchmark_suite", "suite"),
    Column("owner", "owner", extra=True),
    Column("next_at", "next", when),
    Column("paused_at", "paused", when, extra=True),
    Column("last_job_id", "last job"),
    Column("last_problem", "problem", lambda problem: problem or "", fold=True),
)


def add(commands: Any) -> None:
    verbs = group(commands, "schedules", "run jobs on a schedule")
    parser = leaf(verbs, "list", "list schedules", _list)
    parser.add_argument("--owner", default="", metavar="USER")
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only this project's")
    add_format(parser)
    parser = leaf(verbs, "create", "run a job at the times of a cron expression", _create)
    _add_times(parser)
    add_what(parser)
    add_how(parser)
    words = "decide again and again whether a model is better than another"
    parser = leaf(verbs, "decide", words, _decide, _MORE)
    _add_times(parser)
    # --label is that of the schedule.
    add_decision(parser, without=("labels",))
    for verb, words, do in (
        ("pause", "let a schedule make no jobs until it is resumed", _pause),
        ("resume", "resume a paused schedule", _resume),
    ):
        leaf(verbs, verb, words, do).add_argument("schedule", help="a schedule's id")
    parser = leaf(verbs, "delete", "delete a schedule; its jobs are kept", _delete)
    parser.add_argument("schedule", help="a schedule's id")


def _add_times(parser: argparse.ArgumentParser) -> None:
    words = "minute, hour, day of the month, month, day of the week, e.g. '0 3 * * 1'"
    parser.add_argument("cron", help=words)
    parser.add_argument("--time-zone", default="", metavar="ZONE", help="e.g. Europe/Zurich (default: UTC)")
    parser.add_argument("--label", default="", help="what it is for")


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [
            (
                s.schedule_id,
                s.label,
                s.cron,
                s.time_zone,
                _models(s),
                s.spec.endpoint,
                suite_of(s.spec),
                s.owner,
                moment(s.next_at),
                moment(s.paused_at),
                s.last_job_id,
                s.last_problem,
            )
            for s in client.schedules(options.owner, options.project_id)
        ]
    show(Report([Table(_COLUMNS, rows)], notes=[] if rows else ["There are no schedules."]), options.format)
    return DONE


def _create(options: argparse.Namespace) -> int:
    with Client() as client:
        spec = spec_of(client, options)
        made = client.create_schedule(options.cron, spec, time_zone=options.time_zone, label=options.label)
    return _made(made)


def _decide(options: argparse.Namespace) -> int:
    with Client() as client:
        made = client.schedule_decision(
            options.cron,
            *decision_specs(client, options),
            error=options.error,
            margin=options.margin,
            seed=options.order_seed,
            time_zone=options.time_zone,
            label=options.label,
        )
    return _made(made)


def _made(schedule: schedule_pb2.Schedule) -> int:
    print(schedule.schedule_id)
    print(f"Next: {when(moment(schedule.next_at))} UTC.", file=sys.stderr)
    return DONE


def _models(schedule: schedule_pb2.Schedule) -> str:
    """What its jobs ask: of decisions the candidates, and the baseline last."""
    candidates = ", ".join(spec.model for spec in schedule.candidates)
    return f"{candidates} against {schedule.spec.model}" if candidates else schedule.spec.model


def _pause(options: argparse.Namespace) -> int:
    with Client() as client:
        client.pause_schedule(options.schedule)
    print(f"{options.schedule} is paused.")
    return DONE


def _resume(options: argparse.Namespace) -> int:
    with Client() as client:
        made = client.resume_schedule(options.schedule)
    print(f"{options.schedule} runs again. Next: {when(moment(made.next_at))} UTC.")
    return DONE


def _delete(options: argparse.Namespace) -> int:
    with Client() as client:
        client.delete_schedule(options.schedule)
    print(f"{options.schedule} is deleted; its jobs are kept.")
    return DONE
