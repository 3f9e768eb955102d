"""`touchstone bench collect`: starts or continues an experiment, and follows its jobs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from services.experiments import definition as experiments
from services.experiments.reading import MOST_MODEL_B, MOST_REPEATS, MOST_TIPS
from services.experiments.scenarios import tips
from services.words.job_options import ALL
from services.words.refusals import counted
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2, scheduler_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, add_format, between, leaf, of_files
from touchstone_client.command.arguments.judging import add_judges, check_judges, several_judges
from touchstone_client.command.arguments.sampling import endpoint_of
from touchstone_client.command.bench.board import show_board
from touchstone_client.command.bench.definition import Asked
from touchstone_client.command.exits import DONE, FAILED, INTERRUPTED, REFUSED
from touchstone_client.command.reports.watching import bare
from touchstone_client.command.reports.watching_several import code_of, ends
from touchstone_client.errors import RefusedError

_MORE = """Starts an experiment: one job for each model, which asks every prompt in every scenario. Follows the jobs to
the end and prints the leaderboard. The same command again continues the experiment: it asks only for what is
missing. For admins."""


def add(verbs: Any) -> None:
    parser = leaf(verbs, "collect", "run or continue an experiment", _collect, _MORE)
    add = parser.add_argument
    words = "a definition in YAML or JSON; - for standard input. Options replace its fields"
    of_files(add("file", metavar="FILE", nargs="?", default="", help=words))
    add("--models", default="", metavar="A,B", help="models to ask: provider/model, model@provider, or model")
    words = "the endpoint of models that name none (default: the first of kind ollama)"
    add("--endpoint", "--provider", default="", help=words)
    add("--prompts", default="", metavar="A,B", help="ids of shipped prompts, e.g. v1,v2-mentor,v3-few-shot")
    add("--experiment", default="", metavar="NAME", help="the experiment's name")
    rows = parser.add_mutually_exclusive_group()
    words = "how many scenarios of the set tips (default: all)"
    rows.add_argument("--n-scenarios", type=_first, metavar="N", help=words)
    words = "JSON Lines with scenarios of your own"
    of_files(rows.add_argument("--scenarios", default="", metavar="FILE", help=words))
    add("--repeats", type=between(1, MOST_REPEATS), metavar="N", help="how often each question is asked (default: 1)")
    words = f"how many tips prompts ask for (default: {experiments.N_TIPS})"
    add("--n-tips", type=between(1, MOST_TIPS), metavar="N", help=words)
    add("--diversity", action="store_true", help="ask for tips that differ")
    words = f"the largest model, in billions of parameters; 0 for any (default: {experiments.MAX_MODEL_B:g})"
    add("--max-model-b", type=between(0, MOST_MODEL_B, whole=False), metavar="B", help=words)
    words = "the largest judge, in billions of parameters; 0 for any (default: as --max-model-b)"
    add("--max-judge-b", type=between(0, MOST_MODEL_B, whole=False), metavar="B", help=words)
    for parameter in PARAMETERS.values():
        add_field(parser, parameter)
    add_field(parser, ALL["budget_usd"], "; for all jobs together; needs --max-tokens")
    add_field(parser, ALL["priority"])
    add_judges(parser, "a model, or model@endpoint, that judges all answers by the experiment's rubric")
    add("--check", action="store_true", help="check everything and start nothing")
    words = "print the ids of the jobs and leave"
    add("--detach", "--no-watch", dest="no_watch", action="store_true", help=words)
    add_format(parser)


def _collect(options: argparse.Namespace) -> int:
    check_judges(options)
    asked = Asked.of(options)
    with Client() as client:
        if options.endpoint:
            asked.value["provider"] = endpoint_of(client, options.endpoint)
        judges = several_judges(client, options)
        try:
            made = client.run_experiment(asked.value, judges=judges, check_only=options.check)
        except RefusedError as error:
            for sentence in asked.told(error):
                print(f"touchstone: {sentence}", file=sys.stderr)
            return REFUSED
        size = f"{counted(made.cells, 'cell')}, {counted(made.calls, 'question')}"
        _say_judges(made, judges)
        if options.check:
            print(f"{made.experiment}: {size}. Nothing was started.")
            return DONE
        print(f"touchstone: {made.experiment}: {counted(len(made.jobs), 'model')}, {size}", file=sys.stderr)
        gone = {one.judge: len(one.job_ids) for one in made.deleted_judges}
        for place, judge in enumerate(judges):
            if gone.get(place, 0) < len(made.jobs):
                words = f"{judge.model} judges the answers once all are there: touchstone bench compare --experiment"
                print(f"touchstone: {words} {made.experiment}", file=sys.stderr)
        for job in made.jobs:
            print(job.job_id, file=sys.stdout if bare(options) else sys.stderr, flush=True)
        if options.no_watch:
            return DONE
        try:
            last = ends(client, made.jobs)
        except KeyboardInterrupt:
            words = "stopped watching; the jobs continue. The same command follows them again."
            print(f"\ntouchstone: {words}", file=sys.stderr)
            return INTERRUPTED
        code = code_of(last)
        if code == FAILED:
            print("touchstone: the same command asks again for what is missing.", file=sys.stderr)
        show_board(client.experiment(made.experiment), options.format)
        return code


def _say_judges(made: scheduler_service_pb2.RunExperimentResponse, judges: Sequence[job_pb2.Judge]) -> None:
    """What is not as a caller may expect of these judges."""
    models = {job.job_id: job.spec.model for job in made.jobs}
    for place, judge in enumerate(judges):
        if any(_is_another(judge, known) for job in made.jobs for known in job.spec.judges):
            words = "is there with other parameters, too, as another judge. Each judges, and costs, all answers."
            print(f"touchstone: {judge.model} {words}", file=sys.stderr)
        for gone in made.deleted_judges:
            if gone.judge == place:
                whose = ", ".join(models[job_id] for job_id in gone.job_ids if job_id in models)
                words = f"does not judge the answers of {whose} again: its job was deleted. As another judge it does:"
                print(f"touchstone: {judge.model} {words} with another --judge-seed.", file=sys.stderr)


def _is_another(judge: job_pb2.Judge, known: job_pb2.Judge) -> bool:
    """Whether this is the same model with other parameters."""
    same = (judge.endpoint, judge.model) == (known.endpoint, known.model)
    return same and judge.sampling != known.sampling


def _first(text: str) -> int:
    """How many scenarios of the set."""
    return int(between(1, len(tips()))(text))
