"""`touchstone estimate`: the time and cost of a run, estimated from a pilot on some items."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from services.words.durations import time_left, time_range
from services.words.refusals import counted
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, count, leaf
from touchstone_client.command.arguments.work import add_work, check, specs_of
from touchstone_client.command.exits import DONE, FAILED
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import dollars, listed_on, whole
from touchstone_client.command.printing.labels import labels
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional
from touchstone_client.command.reports.watching_several import code_of, ends, interrupted
from touchstone_client.specs import PILOT

_PILOT = 30


class _Shown(NamedTuple):
    value: str
    interval: str


class _Run(NamedTuple):
    """A pilot, and the estimate of the run."""

    pilot: job_pb2.Job
    told: results_service_pb2.EstimateRunResponse


_COLUMNS = (
    Column("run", "run", data=False),
    Column("model_name", ""),
    Column("endpoint", ""),
    Column("pilot_job", ""),
    Column("items", ""),
    Column("pilot_items", ""),
    Column("figure", "figure"),
    Column("shown", "estimate", lambda shown: shown.value, right=True, data=False),
    Column("interval", "95 % interval", lambda shown: shown.interval, right=True, data=False),
    Column("value", ""),
    Column("low", ""),
    Column("high", ""),
)
_FIGURES = {
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "cost_usd": "cost",
    "duration_s": "time",
}


def add(commands: Any) -> None:
    words = "run some items as a pilot, and estimate the whole run"
    more = " Takes the arguments of `run`; --limit is that of the estimated run."
    parser = leaf(commands, "estimate", words, _estimate, f"{words[0].upper()}{words[1:]}.{more}")
    add_work(parser)
    words = f"items of the pilot; of a suite, of each task (default: {_PILOT})"
    parser.add_argument("--pilot", type=count, default=_PILOT, metavar="N", help=words)
    words = "calls at once in the run (default: the endpoint's concurrency)"
    parser.add_argument("--concurrency", type=count, default=0, metavar="N", help=words)
    add_format(parser)


def _estimate(options: argparse.Namespace) -> int:
    check(options)
    with Client() as client:
        pilots = client.run_all(_pilot(spec, options) for spec in specs_of(client, options))
        for job in pilots:
            print(f"pilot: job {job.job_id}", file=sys.stderr)
        try:
            pilots = ends(client, pilots)
        except KeyboardInterrupt:
            return interrupted()
        done = [job for job in pilots if job.state == job_pb2.Job.STATE_COMPLETED]
        runs = [_Run(job, client.estimate(job.job_id, _items(job, options), options.concurrency)) for job in done]
    if runs:
        show(_report(runs), options.format)
    # A pilot with failed items still gives an estimate.
    return FAILED if code_of([job for job in pilots if job not in done]) else DONE


def _pilot(spec: job_pb2.JobSpec, options: argparse.Namespace) -> job_pb2.JobSpec:
    """The run's own first items: samples are nested, so the run can reuse the answers."""
    made = job_pb2.JobSpec()
    made.CopyFrom(spec)
    work = made.dataset if made.WhichOneof("work") == "dataset" else made.suite
    work.limit = min(options.pilot, options.limit or options.pilot)
    made.labels[PILOT] = str(options.limit)
    made.provider_batch = False
    return made


def _items(pilot: job_pb2.Job, options: argparse.Namespace) -> int:
    """The number of the run's answers, if the pilot's plan shows it; 0 leaves it to the service, which knows whole
    suites."""
    if not (options.limit or options.tasks or options.dataset):
        return 0
    known = [(plan.published_items, plan.repeats or 1) for plan in pilot.plan]
    if not all(published for published, _ in known):
        return 0
    return sum(min(options.limit or published, published) * repeats for published, repeats in known)


def _report(runs: Sequence[_Run]) -> Report:
    called = labels([run.pilot for run in runs])
    notes = []
    for run in runs:
        told = run.told
        notes.append(
            f"{called[run.pilot.job_id]}: {counted(told.items, 'item')}, learned from {told.pilot_items:,} of job "
            f"{run.pilot.job_id}. The time excludes waiting in the queue."
        )
        if not told.HasField("cost_usd"):
            notes.append(f"{called[run.pilot.job_id]}: the cost is unknown because no price is known.")
        elif listed := listed_on(run.pilot.receipt.prices):
            notes.append(f"{called[run.pilot.job_id]}: the cost is at the {listed}.")
    # Answers are reused only if the weights are known to be the same.
    taken = [called[run.pilot.job_id] for run in runs if run.pilot.receipt.model_digest]
    if len(taken) == len(runs):
        notes.append("A run with --reuse reuses the pilot's answers.")
    elif taken:
        notes.append(f"A run with --reuse reuses the pilot's answers of {', '.join(taken)}.")
    rows = [row for run in runs for row in _rows(run, called[run.pilot.job_id])]
    return Report([Table(_COLUMNS, rows)], notes=notes, document=[_document(run) for run in runs])


def _rows(run: _Run, called: str) -> Iterable[Sequence[Any]]:
    for field, words in _FIGURES.items():
        found = optional(run.told, field)
        if found is None:
            continue
        yield (
            called,
            run.pilot.spec.model,
            run.pilot.spec.endpoint,
            run.pilot.job_id,
            run.told.items,
            run.told.pilot_items,
            words,
            _shown(field, found),
            _shown(field, found),
            found.value,
            found.low,
            found.high,
        )


def _shown(field: str, found: results_service_pb2.Estimate) -> _Shown:
    if field == "duration_s":
        value = time_left(found.value)
        return _Shown(value, time_range(found.value, found.low, found.high) or value)
    show = dollars if field == "cost_usd" else whole
    return _Shown(show(found.value), f"{show(found.low)} to {show(found.high)}")


def _document(run: _Run) -> dict[str, Any]:
    spec = run.pilot.spec
    named = {"model_name": spec.model, "endpoint": spec.endpoint, "pilot_job": run.pilot.job_id}
    prices = document(run.pilot.receipt.prices) if run.pilot.receipt.HasField("prices") else None
    return {**named, "cost_usd": None, **document(run.told), "prices": prices}
