"""`touchstone queue`, `evaluators`, `endpoints`, `models` and `suites`: what waits and what can be run."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from services.words.endpoints import evaluator_state
from services.words.enums import ENDPOINT_STATES, PRIORITIES
from services.words.jobs import stage_of, status_of, suite_of, work_of
from services.words.plugins import left_out
from services.words.refusals import counted
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import Do, add_format, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import left, moment, text, when
from touchstone_client.command.printing.output import Column, Report, Table, show

_JOBS = (
    Column("place", "place", lambda place: str(place or ""), right=True),
    Column("job_id", "job"),
    Column("status", ""),
    Column("phase", "status"),
    Column("model_name", "model"),
    Column("endpoint", "endpoint", extra=True),
    Column("work", "suite", data=False),
    Column("benchmark_suite", ""),
    Column("owner", "owner", extra=True),
    Column("priority", "priority", extra=True),
    Column("items_done", "done", right=True),
    Column("items_total", "of", right=True),
    Column("time_left", "time", lambda left: left or "", data=False),
    Column("created_at", "created", when, extra=True),
)
_EVALUATORS = (
    Column("evaluator", "evaluator"),
    Column("host", "host"),
    Column("state", "state"),
    Column("endpoints", "endpoints"),
    Column("units_in_flight", "units", right=True),
    Column("software", "software", extra=True),
    Column("announced_at", "heard", when, extra=True),
)
_ENDPOINTS = (
    Column("endpoint", "endpoint"),
    Column("kind", "kind"),
    Column("state", "state"),
    Column("slots_busy", "busy", right=True),
    Column("slots_total", "of", right=True),
    Column("requests_per_minute", "limit a minute", lambda limit: text(limit or None), right=True),
    Column("server", "server", extra=True),
    Column("detail", "detail", lambda detail: detail or "", fold=True),
)
_MODELS = (
    Column("model", "model"),
    Column("endpoint", "endpoint"),
    Column("parameters_b", "billions", lambda value: text(value or None), right=True),
    Column("quantization", "weights", extra=True),
    Column("context_length", "context", lambda value: text(value or None), right=True),
    Column("digest", "digest", lambda digest: text(digest[:12]), extra=True),
    Column("description", "", text),
)
_SUITES = (
    Column("suite", "suite"),
    Column("title", "title"),
    Column("tasks", "tasks", right=True),
    Column("items", "items", lambda value: text(value or None), right=True),
    Column("plugin", "plug-in", lambda plugin: plugin or "", extra=True),
    Column("description", "description"),
)
_LEFT_OUT = (Column("left_out", "left out of running evaluators", fold=True),)


def add(commands: Any) -> None:
    parser = _leaf(commands, "queue", "show running and waiting jobs", _queue)
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only this project's jobs")
    _leaf(commands, "evaluators", "list the processes that run jobs", _evaluators)
    for verb, words, do in (
        ("drain", "let an evaluator finish what it has begun and take no new units; for admins", _drain),
        ("resume", "let a drained evaluator take units again; for admins", _resume),
    ):
        leaf(commands, verb, words, do).add_argument("evaluator", help="an evaluator's name")
    _leaf(commands, "endpoints", "list the ways to reach models", _endpoints)
    parser = _leaf(commands, "models", "list models", _models)
    parser.add_argument("--endpoint", "--provider", default="", help="only of this endpoint (default: all)")
    _leaf(commands, "suites", "list what models can be evaluated on", _suites)


def _leaf(commands: Any, name: str, words: str, do: Do) -> argparse.ArgumentParser:
    parser = leaf(commands, name, words, do)
    add_format(parser)
    return parser


def _queue(options: argparse.Namespace) -> int:
    with Client() as client:
        queue = client.queue(options.project_id)
    facts = {"running": f"{len(queue.running)} of {queue.slots}", "evaluators": text(queue.evaluators)}
    if queue.notice:
        facts["notice"] = queue.notice
    show(
        Report([live([*queue.running, *queue.scoring, *queue.pending])], facts=facts, document=document(queue)),
        options.format,
    )
    return DONE


def live(jobs: Iterable[job_pb2.Job]) -> Table:
    """Jobs with their positions and progress."""
    return Table(_JOBS, [_job(job) for job in jobs])


def _job(job: job_pb2.Job) -> Sequence[Any]:
    return (
        job.progress.queue_position,
        job.job_id,
        status_of(job.state),
        stage_of(job),
        job.spec.model,
        job.spec.endpoint,
        work_of(job.spec),
        suite_of(job.spec),
        job.owner,
        PRIORITIES.of(job.spec.priority, "unspecified"),
        job.progress.items_done,
        job.progress.items_total,
        left(job.progress),
        moment(job.created_at),
    )


def _evaluators(options: argparse.Namespace) -> int:
    with Client() as client:
        found = list(client.evaluators())
    rows = [
        (
            e.evaluator,
            e.host,
            _life(e),
            [endpoint.endpoint for endpoint in e.endpoints],
            e.units_in_flight,
            e.software,
            moment(e.announced_at),
        )
        for e in found
    ]
    show(Report([Table(_EVALUATORS, rows)]), options.format)
    return DONE


def _life(evaluator: evaluator_pb2.Evaluator) -> str:
    return evaluator_state(evaluator) if evaluator.live else "gone"


def _drain(options: argparse.Namespace) -> int:
    with Client() as client:
        one = client.drain_evaluator(options.evaluator)
    left = one.units_in_flight
    print(f"{one.evaluator} takes no new units" + (f" and finishes {counted(left, 'unit')}." if left else "."))
    return DONE


def _resume(options: argparse.Namespace) -> int:
    with Client() as client:
        one = client.resume_evaluator(options.evaluator)
    print(f"{one.evaluator} takes units again.")
    return DONE


def _endpoints(options: argparse.Namespace) -> int:
    with Client() as client:
        found = list(client.endpoints())
    rows = [
        (
            e.endpoint,
            e.kind,
            ENDPOINT_STATES.of(e.state, "unspecified"),
            e.slots_busy,
            e.slots_total,
            e.requests_per_minute,
            e.server,
            e.detail,
        )
        for e in found
    ]
    show(Report([Table(_ENDPOINTS, rows)]), options.format)
    return DONE


def _models(options: argparse.Namespace) -> int:
    with Client() as client:
        names = [options.endpoint] if options.endpoint else [known.endpoint for known in client.endpoints()]
        rows = [row for name in names for row in _of_endpoint(name, client.models(name))]
    show(Report([Table(_MODELS, rows)]), options.format)
    return DONE


def _of_endpoint(endpoint: str, models: Iterable[endpoint_pb2.Model]) -> list[Sequence[Any]]:
    return [
        (m.model, endpoint, m.parameters_b, m.quantization, m.context_length, m.digest, m.description) for m in models
    ]


def _suites(options: argparse.Namespace) -> int:
    with Client() as client:
        found = list(client.suites())
        out = left_out(one for one in client.evaluators() if one.live)
    rows = [
        (s.suite, s.title, len(s.tasks), sum(task.published_items for task in s.tasks), s.plugin, s.description)
        for s in found
    ]
    show(Report([Table(_SUITES, rows)]), options.format)
    if out and options.format == "table":
        show(Report([Table(_LEFT_OUT, [(line,) for line in out])]), options.format)
    return DONE
