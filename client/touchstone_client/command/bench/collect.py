"""`touchstone bench collect`: starts or continues an experiment, and follows its jobs."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.experiments import definition as experiments
from services.experiments import files
from services.experiments.fields import DefinitionError
from services.words.fields import decimal
from services.words.job_options import ALL
from services.words.refusals import counted
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, add_format, count, leaf, of_files
from touchstone_client.command.arguments.judging import add_judge_model
from touchstone_client.command.arguments.sampling import endpoint_of
from touchstone_client.command.bench.board import show_board
from touchstone_client.command.exits import DONE, FAILED, INTERRUPTED, REFUSED
from touchstone_client.command.reports.watching import bare
from touchstone_client.command.reports.watching_several import code_of, ends
from touchstone_client.errors import InvalidError
from touchstone_client.specs import judge_spec

_MOST_BYTES = 3_000_000
"""Of a file: requests hold no more."""
_MORE = """Starts an experiment: one job for each model, which asks every prompt in every scenario. Follows the jobs to
the end and prints the leaderboard. The same command again continues the experiment: it asks only for what is
missing. For admins."""


def add(verbs: Any) -> None:
    parser = leaf(verbs, "collect", "run or continue an experiment", _collect, _MORE)
    add = parser.add_argument
    words = "a definition in YAML or JSON; - for standard input. Options replace its fields"
    of_files(add("file", metavar="FILE", nargs="?", default="", help=words))
    add("--models", default="", metavar="A,B", help="models to ask: provider/model, or model")
    words = "the endpoint of models that name none (default: the first of kind ollama)"
    add("--endpoint", "--provider", default="", help=words)
    add("--prompts", default="", metavar="A,B", help="ids of shipped prompts, e.g. v1,v2-mentor,v3-few-shot")
    add("--experiment", default="", metavar="NAME", help="the experiment's name")
    rows = parser.add_mutually_exclusive_group()
    words = "how many scenarios of the set tips (default: all)"
    rows.add_argument("--n-scenarios", type=count, metavar="N", help=words)
    words = "JSON Lines with scenarios of your own"
    of_files(rows.add_argument("--scenarios", default="", metavar="FILE", help=words))
    add("--repeats", type=count, metavar="N", help="how often each question is asked (default: 1)")
    add("--n-tips", type=count, metavar="N", help=f"how many tips prompts ask for (default: {experiments.N_TIPS})")
    add("--diversity", action="store_true", help="ask for tips that differ")
    words = f"the largest model, in billions of parameters; 0 for any (default: {experiments.MAX_MODEL_B:g})"
    add("--max-model-b", type=_billions, metavar="B", help=words)
    for parameter in PARAMETERS.values():
        add_field(parser, parameter)
    add_field(parser, ALL["budget_usd"], "; for all jobs together; needs --max-tokens")
    add_field(parser, ALL["priority"])
    add_judge_model(parser, "a model, or model@endpoint, that judges all answers by the experiment's rubric")
    add("--check", action="store_true", help="check everything and start nothing")
    words = "print the ids of the jobs and leave"
    add("--detach", "--no-watch", dest="no_watch", action="store_true", help=words)
    add_format(parser)


def _collect(options: argparse.Namespace) -> int:
    if options.judge_endpoint and not options.judge_model:
        options.parser.error("--judge-endpoint needs --judge-model")
    asked = _read(options.file) if options.file else {}
    asked = _replaced(asked, options)
    with Client() as client:
        if options.endpoint:
            asked["provider"] = endpoint_of(client, options.endpoint)
        judges = _judges(client, options)
        try:
            made = client.run_experiment(asked, judges=judges, check_only=options.check)
        except InvalidError as error:
            if len(error.problems) < 2:
                raise
            for _, sentence in error.problems:
                print(f"touchstone: {sentence}", file=sys.stderr)
            return REFUSED
        size = f"{counted(made.cells, 'cell')}, {counted(made.calls, 'question')}"
        if options.check:
            print(f"{made.experiment}: {size}. Nothing was started.")
            return DONE
        print(f"touchstone: {made.experiment}: {counted(len(made.jobs), 'model')}, {size}", file=sys.stderr)
        for judge in judges:
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


def _replaced(asked: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The definition with the options in place of its own fields."""
    said: dict[str, Any] = {
        "name": options.experiment,
        "models": options.models,
        "prompts": options.prompts,
        "n_scenarios": options.n_scenarios,
        "repeats": options.repeats,
        "n_tips": options.n_tips,
        "diversity": options.diversity,
        "max_model_b": options.max_model_b,
        "budget_usd": options.budget_usd,
        "priority": options.priority,
        **{one.rest: getattr(options, name) for name, one in PARAMETERS.items()},
    }
    # 0 is a value.
    given = {name: value for name, value in said.items() if value is not None and value is not False and value != ""}
    if options.scenarios:
        given["scenarios"] = _scenarios(options.scenarios)
    for words in _other_words():
        # A field under another name would count as given twice.
        if given.keys() & words:
            asked = {name: value for name, value in asked.items() if name not in words}
    return {**asked, **given}


def _other_words() -> Iterator[set[str]]:
    """Sets of names, of which a definition may have one."""
    yield {"name", "experiment"}
    yield {"scenarios", "n_scenarios"}
    for parameter in PARAMETERS.values():
        yield {parameter.rest, *parameter.aliases}


def _judges(client: Client, options: argparse.Namespace) -> list[job_pb2.Judge]:
    if not options.judge_model:
        return []
    (target,) = client.targets([options.judge_model], options.judge_endpoint)
    return [judge_spec(endpoint=target.endpoint, model=target.model)]


def _read(file: str) -> dict[str, Any]:
    """The definition in a file. Raises InvalidError, and OSError."""
    place, data = _bytes(file)
    try:
        return files.definition(data, is_json=file.endswith(".json"))
    except DefinitionError as error:
        raise InvalidError.of(f"{place}: {error.message}") from error


def _scenarios(file: str) -> list[Any]:
    """Raises InvalidError, and OSError."""
    place, data = _bytes(file)
    try:
        return files.scenarios(data)
    except DefinitionError as error:
        raise InvalidError.of(f"{place}: {error.message}") from error


def _bytes(file: str) -> tuple[str, bytes]:
    """How a file is called, and what it holds. Raises InvalidError for one that is too large, and OSError."""
    place = "standard input" if file == "-" else file
    if file == "-":
        data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    else:
        with Path(file).open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidError.of(f"{place} has more than {_MOST_BYTES:,} bytes. Shorten it.")
    return place, data


def _billions(text: str) -> float:
    value = decimal(text)
    if value is None or not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("it must be a number, 0 or more")
    return value
