"""The gate by a decision: both models are asked the same items until it is known whether the candidate passes."""

from __future__ import annotations

import argparse
import sys
import time

from services.words.enums import DECISION_VERDICTS
from services.words.jobs import status_of
from touchstone.v1 import decision_pb2, job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.sampling import spec_of
from touchstone_client.command.gate.verdict import Outcome, judge_decision
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import signed, whole
from touchstone_client.command.printing.output import Column, Report, Table
from touchstone_client.command.reports.scores import optional
from touchstone_client.command.reports.stored import ended_decision
from touchstone_client.command.reports.watching import shown

_COLUMNS = (
    Column("decision", "decision", key=True),
    Column("baseline", "baseline"),
    Column("candidate", "candidate"),
    Column("verdict", "verdict"),
    Column("decided_at", "decided after", whole, right=True),
    Column("items_total", "of items", whole, right=True),
    Column("difference", "difference", signed, right=True),
    Column("low", "low", signed, right=True),
    Column("high", "high", signed, right=True),
)
_LEAST_S = 1.0
"""To see that the baseline's job has ended with the candidate's."""


def require_fitting(options: argparse.Namespace) -> None:
    """Ends the command for arguments that a decision does not take."""
    for name, given in (("--job", options.job), ("--metric", options.metric != "score")):
        if given:
            options.parser.error(f"--until-decided: not with {name}")
    if options.weighting:
        options.parser.error("--until-decided: not with --weighting")


def decided(client: Client, options: argparse.Namespace, reference: job_pb2.Job) -> tuple[Report, Outcome]:
    """Asks the model of the run `reference`, with its parameters, and the candidate. Raises TimeoutError after
    --timeout; the jobs continue."""
    candidate, baseline = spec_of(client, options), job_pb2.JobSpec()
    baseline.CopyFrom(candidate)
    baseline.endpoint, baseline.model = reference.spec.endpoint, reference.spec.model
    baseline.sampling.CopyFrom(reference.spec.sampling)
    made = client.start_decision(baseline, candidate, margin=options.max_drop)
    print(f"decision: {made.decision_id}", file=sys.stderr)
    began = time.monotonic()
    try:
        # One may have asked everything while the other is behind.
        for job in (made.candidate, made.baseline):
            left_s = None if options.timeout is None else max(_LEAST_S, options.timeout - (time.monotonic() - began))
            shown(client.watch(job.job_id, left_s))
    except TimeoutError as error:
        raise TimeoutError(f"{error} Read it later: touchstone decisions {made.decision_id}") from None
    found = ended_decision(client, made.decision_id)
    return _report(found), judge_decision(found, options.max_drop, _why(found))


def _why(found: decision_pb2.Decision) -> str:
    """Why there is no verdict."""
    if found.note:
        return found.note
    ended = [job for job in (found.baseline, found.candidate) if job.state == job_pb2.Job.STATE_FAILED]
    for job in ended or (found.baseline, found.candidate):
        if job.reason:
            return f"job {job.job_id} is {status_of(job.state)}: {job.reason}"
    return "its jobs have not ended"


def _report(found: decision_pb2.Decision) -> Report:
    names = [f"{job.spec.model}@{job.spec.endpoint}" for job in (found.baseline, found.candidate)]
    verdict = DECISION_VERDICTS.of(found.verdict)
    figures = [optional(found, name) for name in ("difference", "low", "high")]
    row = [found.decision_id, *names, verdict, found.decided_at or None, found.items_total, *figures]
    return Report([Table(_COLUMNS, [row])], document=document(found) | {"verdict": verdict or None})
