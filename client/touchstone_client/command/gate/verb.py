"""The gate's arguments and its steps: baseline, margin, run, comparison, verdict."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc

from services.words.enums import WEIGHTINGS, mode_name
from services.words.jobs import is_finished, status_of, suite_of
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, leaf, seconds, share
from touchstone_client.command.arguments.flags import refusal
from touchstone_client.command.arguments.job_ids import job_of, run_of
from touchstone_client.command.arguments.sampling import add_how, add_what, spec_of
from touchstone_client.command.exits import INTERRUPTED
from touchstone_client.command.gate import baseline, deciding, exits, junit, margin
from touchstone_client.command.gate.agreement import require_same
from touchstone_client.command.gate.sides import candidate_first
from touchstone_client.command.gate.verdict import ALPHA, Outcome, judge
from touchstone_client.command.printing.output import Report, show
from touchstone_client.command.reading.compare import report
from touchstone_client.command.reports.stored import until_stored
from touchstone_client.command.reports.watching import shown
from touchstone_client.errors import ClientError, RefusedError

_EPILOG = """\
exit codes:
  0  passed: at 95 % confidence (one-sided) the drop is less than --max-drop, or there is none
  1  regression: a significant drop (one-sided, 5 %), and not shown to be less than --max-drop
  2  undecided: these items show neither
  3  unusable: a run failed, was cancelled or is incomplete, or the runs do not compare
  4  refused: the arguments cannot be, or a service refused them
  5  a service does not answer or failed, or --timeout is over; the job goes on
"""

_ANSWERS = {
    exits.PASSED: "passed",
    exits.REGRESSION: "regression",
    exits.UNDECIDED: "undecided",
    exits.UNUSABLE: "unusable",
}


class UnusableError(Exception):
    """There is no run to compare."""


def add(commands: Any) -> None:
    words = "for CI: let a model pass when it is shown not to be worse than another"
    parser = leaf(commands, "gate", words, _gate)
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.refused = exits.REFUSED
    words = "a job's id, a configuration's name, alias or hash, model@endpoint, or a model id: its newest complete run"
    parser.add_argument("--baseline", required=True, metavar="RUN", help=words)
    words = "largest drop that does not matter, in the metric's own range, e.g. 0.01"
    parser.add_argument("--max-drop", type=share, required=True, metavar="D", help=words)
    parser.add_argument("--metric", default="score", help="score or a metric's name (default: score)")
    words = "what has equal weight in the score (default: as in the suite's own rule)"
    parser.add_argument("--weighting", choices=[*WEIGHTINGS], default="", help=words)
    parser.add_argument("--job", default="", help="judge this job instead of running the candidate")
    words = "ask both models, and stop as soon as it is known whether the candidate passes"
    parser.add_argument("--until-decided", action="store_true", help=words)
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the outcome as JUnit XML")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="most time to wait for the job")
    add_what(parser, required=False)
    add_how(parser)
    add_format(parser)
    parser.set_defaults(priority="normal")


def _gate(options: argparse.Namespace) -> int:
    """Every failure has its own code: a pipeline must not mistake it for a verdict."""
    if not options.job and not (options.suite and options.endpoint and options.model):
        options.parser.error("name --suite, --endpoint and --model, or a --job")
    if options.until_decided:
        deciding.require_fitting(options)
    if options.junit and not options.junit.absolute().parent.is_dir():
        options.parser.error(f"--junit: folder {options.junit.parent} not found")
    began = time.monotonic()
    whole: Report | None = None
    try:
        with Client() as client:
            whole, outcome = _judged(client, options)
    except UnusableError as error:
        outcome = Outcome(exits.UNUSABLE, str(error))
    except RefusedError as error:
        outcome = Outcome(exits.REFUSED, refusal(error))
    except (ClientError, TimeoutError) as error:
        outcome = Outcome(exits.UNREACHABLE, str(error))
    except OSError as error:
        outcome = Outcome(exits.REFUSED, str(error))
    except Exception as error:
        # Python would end with code 1, which means a regression here.
        traceback.print_exc()
        outcome = Outcome(exits.UNREACHABLE, f"The gate itself failed: {error!r}")
    except KeyboardInterrupt:
        print("\ntouchstone: interrupted; a job that was started continues.", file=sys.stderr)
        return INTERRUPTED
    _print(options.format, outcome, whole, "decision" if options.until_decided else "comparison")
    if options.junit:
        junit.write(options.junit, outcome, options.suite or "job", time.monotonic() - began)
    return outcome.code


def _judged(client: Client, options: argparse.Namespace) -> tuple[Report, Outcome]:
    source = client.job(job_of(client, options.job)) if options.job else None
    if source:
        require_same(client, options, source)
    suite, mode = (
        (suite_of(source.spec), mode_name(source.spec.mode)) if source else (options.suite, options.mode or "generate")
    )
    reference = baseline.find(client, run_of(client, options.baseline), suite, mode, options.project_id)
    _require_complete(reference, "baseline's")
    until_stored(client, [reference])
    if options.until_decided:
        _tell_baseline(reference)
        return deciding.decided(client, options, reference)
    if source is None:
        source = client.run(_spec(client, options, reference))
        print(f"candidate: job {source.job_id}", file=sys.stderr)
    if not is_finished(source):
        try:
            source = shown(client.watch(source.job_id, options.timeout))
        except TimeoutError as error:
            raise TimeoutError(f"{error} Judge it later: touchstone gate --job {source.job_id} …") from None
    _require_complete(source, "candidate's")
    until_stored(client, [source])
    compared = client.compare(
        [source.job_id, reference.job_id],
        metrics=[options.metric],
        baseline=reference.job_id,
        margin=options.max_drop,
        alpha=2 * ALPHA,
        weighting=options.weighting,
    )
    names = {
        source.job_id: f"{source.spec.model} (candidate)",
        reference.job_id: f"{reference.spec.model} (baseline)",
    }
    told = candidate_first(compared, source.job_id, names)
    return report(told, names), judge(told, source.job_id, reference.job_id, options.metric, options.max_drop)


def _spec(client: Client, options: argparse.Namespace, reference: job_pb2.Job) -> job_pb2.JobSpec:
    """What the candidate runs, after reporting what that can prove."""
    spec = spec_of(client, options)
    _tell_baseline(reference)
    print(_margin(client, options, spec, reference).words(options.max_drop), file=sys.stderr)
    return spec


def _tell_baseline(reference: job_pb2.Job) -> None:
    print(f"baseline: job {reference.job_id}, {reference.spec.model}@{reference.spec.endpoint}", file=sys.stderr)


def _margin(
    client: Client, options: argparse.Namespace, spec: job_pb2.JobSpec, reference: job_pb2.Job
) -> margin.Margin:
    """From the candidate's last run, if there is one on as many items; else from the baseline alone."""
    result = client.result(reference.job_id)
    rule = WEIGHTINGS.get(options.weighting, result.weighting)
    worst = margin.independent(result, options.metric, options.tasks, options.limit, rule)
    try:
        last = client.compare(
            [reference.job_id, f"{spec.model}@{spec.endpoint}"],
            suite=options.suite,
            mode=options.mode or "generate",
            metrics=[options.metric],
            alpha=2 * ALPHA,
            weighting=options.weighting,
        )
    except RefusedError as error:
        if error.code == grpc.StatusCode.UNAUTHENTICATED:
            raise
        return worst
    whole = [d for d in last.differences if not d.task and d.metric == options.metric and d.HasField("stderr")]
    if not whole or last.items != worst.items:
        return worst
    earlier = next(run.job_id for run in last.runs if run.job_id != reference.job_id)
    return margin.like_last_time(whole[0], last.items, earlier)


def _require_complete(job: job_pb2.Job, whose: str) -> None:
    if job.state != job_pb2.Job.STATE_COMPLETED:
        raise UnusableError(
            f"The {whose} job {job.job_id} is {status_of(job.state)}: {job.reason or 'it is not finished'}"
        )
    if job.incomplete:
        raise UnusableError(
            f"The {whose} job {job.job_id} is incomplete. Run the missing items: touchstone retry {job.job_id}"
        )


def _print(format: str, outcome: Outcome, whole: Report | None, kind: str) -> None:
    """The comparison or decision and the verdict. Without one the sentence goes to stderr."""
    if whole is None:
        print(f"touchstone gate: {outcome.words}", file=sys.stderr)
        return
    answer = _ANSWERS[outcome.code]
    verdict = {"exit_code": outcome.code, "outcome": answer, "words": outcome.words}
    notes = [*whole.notes, f"Gate: {answer}. {outcome.words}"]
    show(replace(whole, notes=notes, document={"gate": verdict, kind: whole.document}), format)
