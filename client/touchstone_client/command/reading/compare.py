"""`touchstone compare`: models on the same items, with tests and verdicts."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.words.enums import COMPARISON_VERDICTS, MODES, WEIGHTINGS
from services.words.refusals import counted
from touchstone.v1 import comparison_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, leaf, names, project, seed, share
from touchstone_client.command.arguments.job_ids import run_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import moment, p_value, places, score, signed, signed_span, span, when
from touchstone_client.command.printing.labels import distinct
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional

_RUNS = (
    Column("places", "places", lambda pair: places(*pair), right=True),
    Column("run", "run"),
    Column("metric", "metric"),
    Column("mean", "mean", score, right=True, key=True),
    Column("interval", "95 % interval", lambda pair: span(*pair), right=True, key=True),
    Column("flips", "flips, asked again", score, right=True),
    Column("floor", "two runs differ by", score, right=True),
    Column("job", "job"),
    Column("completed", "completed", when, extra=True),
    Column("remark", "remark", lambda remark: remark or ""),
)
_DIFFERENCES = (
    Column("task", "task", lambda task: task or "suite"),
    Column("metric", "metric"),
    Column("pair", "a against b", data=False),
    Column("a_job", ""),
    Column("b_job", ""),
    Column("verdict", "verdict", key=True),
    Column("difference", "difference", signed, right=True, key=True),
    Column("interval", "interval", lambda pair: signed_span(*pair), right=True, data=False, key=True),
    Column("low", ""),
    Column("high", ""),
    Column("total_interval", "with noise of runs", lambda pair: signed_span(*pair), right=True, data=False),
    Column("total_low", ""),
    Column("total_high", ""),
    Column("p_value", "p", p_value, right=True),
    Column("p_adjusted", "adjusted p", p_value, right=True),
    Column("test", "test", extra=True),
    Column("n", "n", right=True, extra=True),
    Column("smallest_difference", "could show", score, right=True),
    Column("family", ""),
    Column("correction", ""),
    Column("words", ""),
    Column("reason", ""),
)
_OMNIBUS = (
    Column("task", "task", lambda task: task or "suite"),
    Column("metric", "metric"),
    Column("test", "test"),
    Column("statistic", "statistic", lambda value: f"{value:.2f}", right=True),
    Column("degrees_of_freedom", "df", right=True),
    Column("p_value", "p", p_value, right=True),
    Column("n", "n", right=True),
)


def add(commands: Any) -> None:
    words = "compare models on the same items"
    parser = leaf(commands, "compare", words, _compare)
    words = (
        "two or more of: a job's id or its last six digits, a configuration's name, alias or hash, model@endpoint, "
        "a model id, or last for the newest job"
    )
    parser.add_argument("subjects", nargs="+", metavar="run", help=words)
    parser.set_defaults(more="subjects")
    parser.add_argument("--suite", default="", help="required unless every run is a job id")
    parser.add_argument("--metric", "--metrics", type=names, default=[], metavar="A,B", help="(default: score)")
    words = "what has equal weight in the suite's figures (default: as in its own rule)"
    parser.add_argument("--weighting", choices=[*WEIGHTINGS], default="", help=words)
    parser.add_argument("--mode", choices=[*MODES], default="")
    parser.add_argument("--baseline", default="", metavar="RUN", help="compare the others with this one only")
    words = "largest difference that does not matter (default: 0.01)"
    parser.add_argument("--margin", type=share, default=0.0, metavar="D", help=words)
    parser.add_argument("--alpha", type=share, default=0.0, metavar="A", help="family-wise error rate (default: 0.05)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of resampling")
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="only this project's runs")
    add_format(parser)


def _compare(options: argparse.Namespace) -> int:
    if len({*options.subjects, options.baseline} - {""}) < 2:
        options.parser.error("name at least two runs to compare")
    with Client() as client:
        compared = client.compare(
            [run_of(client, word) for word in options.subjects],
            suite=options.suite,
            mode=options.mode,
            metrics=options.metric,
            baseline=run_of(client, options.baseline) if options.baseline else "",
            margin=options.margin,
            alpha=options.alpha,
            seed=options.seed,
            project_id=options.project_id,
            weighting=options.weighting,
        )
    show(report(compared), options.format)
    return DONE


def report(compared: comparison_pb2.CompareResponse, names: Mapping[str, str] | None = None) -> Report:
    """The whole comparison; CSV has the differences. With `names` of the jobs, and without advice."""
    called = names or labels(compared.runs)
    suite = [found for found in compared.differences if not found.task]
    tasks = [found for found in compared.differences if found.task]
    tables = [
        differences(suite, called, "Suite"),
        Table(_RUNS, [row for run in compared.runs for row in _run(run, called)], "Runs"),
    ]
    if tasks:
        tables.append(differences(tasks, called, "Task by task"))
    if compared.omnibus:
        tables.append(Table(_OMNIBUS, [_omnibus(test) for test in compared.omnibus], "Any difference at all"))
    alike = next(
        (f" The suite's figures are means over {w}." for w, r in WEIGHTINGS.items() if r == compared.weighting), ""
    )
    level = f"{1 - compared.alpha:.0%}".replace("%", " %")
    advice = [] if names else [*compared.recommendations, *(found.words for found in suite if found.words)]
    notes = [
        *advice,
        *compared.notes,
        f"{counted(compared.items, 'item')}{', a subset' if compared.subset else ''}. "
        f"Intervals of differences at {level}, "
        f"not adjusted. Differences of less than {compared.margin:g} count as equivalent.{alike}",
    ]
    return Report(
        tables,
        notes=notes,
        document=document(compared),
        csv=differences(compared.differences, called, ""),
        heading=f"{compared.suite}: {', '.join(called[run.job_id] for run in compared.runs)}",
    )


def labels(runs: Sequence[comparison_pb2.ComparedRun]) -> dict[str, str]:
    """What jobs are called: their names, or else the usual labels."""
    return distinct({run.job_id: (run.name, "") if run.name else (run.model, run.endpoint) for run in runs})


def differences(found: Iterable[comparison_pb2.Difference], called: Mapping[str, str], title: str) -> Table:
    return Table(_DIFFERENCES, [_difference(one, called) for one in found], title)


def _difference(found: comparison_pb2.Difference, called: Mapping[str, str]) -> Sequence[Any]:
    low, high = optional(found, "low"), optional(found, "high")
    total_low, total_high = optional(found, "total_low"), optional(found, "total_high")
    return (
        found.task,
        found.metric,
        f"{called.get(found.a, found.a)} / {called.get(found.b, found.b)}",
        found.a,
        found.b,
        verdict(found),
        optional(found, "difference"),
        (low, high),
        low,
        high,
        (total_low, total_high),
        total_low,
        total_high,
        optional(found, "p_value"),
        optional(found, "p_adjusted"),
        found.test,
        found.n,
        optional(found, "smallest_difference"),
        found.family,
        found.correction,
        found.words,
        found.reason,
    )


def verdict(found: comparison_pb2.Difference) -> str:
    """The verdict on `a`: "better", "no difference shown"."""
    return COMPARISON_VERDICTS.of(found.verdict, "unspecified").replace("_", " ")


def _run(run: comparison_pb2.ComparedRun, called: Mapping[str, str]) -> list[Sequence[Any]]:
    remark = "baseline" if run.baseline else run.not_ranked_reason or run.caution
    return [
        (
            (run.rank_low, run.rank_high),
            called[run.job_id],
            metric.metric,
            optional(metric, "mean"),
            (optional(metric, "ci95_low"), optional(metric, "ci95_high")),
            run.again.flips.share if run.HasField("again") else None,
            run.again.floor if run.HasField("again") else None,
            run.job_id,
            moment(run.completed_at),
            remark,
        )
        for metric in run.scores
    ]


def _omnibus(test: comparison_pb2.Omnibus) -> Sequence[Any]:
    return (test.task, test.metric, test.test, test.statistic, test.degrees_of_freedom, test.p_value, test.n)
