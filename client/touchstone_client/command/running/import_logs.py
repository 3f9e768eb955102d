"""`touchstone import`: sample logs of lm_eval and Inspect, and files of answers, as finished runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from services.words.job_options import ALL
from services.words.jobs import ENDED_EARLY
from services.words.refusals import counted
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ImportAnswersResponse
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, leaf
from touchstone_client.command.reports.watching import add_watch, follow
from touchstone_client.errors import InvalidError
from touchstone_client.importing import reading, responses
from touchstone_client.importing.log import Log, Target
from touchstone_client.importing.names import resolve
from touchstone_client.importing.sending import Import
from touchstone_client.specs import DATASET_TASK


def add(commands: Any) -> None:
    words = (
        "import answers that other tools collected, as a finished run: logs of lm_eval or Inspect, or any JSON lines"
    )
    parser = leaf(
        commands,
        "import",
        words,
        _import,
        "Scores the answers in another tool's logs, or in a file of answers, with Touchstone's scorers.",
    )
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="lm_eval's samples_*.jsonl (with results_*.json in the same folder) or their folder; Inspect's .eval "
        "or .json; answers as .jsonl or .jsonl.gz, each line with an id or prompt and a response",
    )
    add(
        "--model",
        default="",
        help="the model's id, as in its other runs; for files of answers, if their lines do not have it",
    )
    add(
        "--suite",
        default="",
        help="the suite of the files; not required for logs with known tasks",
    )
    add("--dataset", default="", metavar="ID", help="the dataset of a file of answers")
    add(
        "--task",
        dest="tasks",
        action="append",
        default=[],
        type=_pair,
        metavar="[NAME=][SUITE/]TASK",
        help="the log's task NAME, or the only file, has the rows of TASK; may be repeated",
    )
    add("--shots", type=_number, metavar="K", help="examples in the prompts, if the log does not say")
    add(
        "--first-id",
        type=_number,
        metavar="N",
        help="Inspect: the id of the first row (default: 0 if there is one, else 1)",
    )
    add_field(parser, ALL["project_id"])
    add("--again", action="store_true", help="import again what was imported before")
    add_watch(parser)


def _import(options: argparse.Namespace) -> int:
    logs = reading.read(options.files, options.shots, options.first_id)
    model = _model(logs, options.model)
    with Client() as client:
        taken = _about_dataset(logs, model, options) or _about_suite(client, logs, model, options)
        stored = client.import_answers(taken.requests(options.again))
        if (job := _before(client, stored)) is not None:
            _say(f"imported before, as job {job.job_id}. To import it again: --again.")
        else:
            _tell(logs, stored)
            job = client.run(taken.spec(stored.import_id, stored.repeats, options.project_id))
        code = follow(client, job, options)
        if not options.no_watch:
            _tell_counts(client.job(job.job_id))
        return code


def _model(logs: list[Log], named: str) -> str:
    """Raises InvalidError."""
    models = list(dict.fromkeys(model for log in logs for model in log.models))
    if named or len(models) == 1:
        return named or models[0]
    if models:
        raise InvalidError.of(f"The lines are of several models: {', '.join(models)}. Name one: --model.")
    raise InvalidError.of("Say which model answered: --model.")


def _about_suite(client: Client, logs: list[Log], model: str, options: argparse.Namespace) -> Import:
    """Raises InvalidError."""
    tasks = dict(options.tasks)
    if (only := tasks.pop("", None)) is not None:
        if len(logs) > 1 or tasks:
            raise InvalidError.of("With several files, name the task of each: --task NAME=TASK.")
        tasks[logs[0].task] = only
    suite, targets = resolve(logs, client.suites(), options.suite, tasks)
    return Import(logs, model, suite, targets)


def _about_dataset(logs: list[Log], model: str, options: argparse.Namespace) -> Import | None:
    """Raises InvalidError."""
    if not options.dataset:
        return None
    if options.suite or options.tasks:
        raise InvalidError.of("A file belongs to a suite or to a dataset. Leave out --dataset, or --suite and --task.")
    if len(logs) > 1 or logs[0].tool != responses.TOOL:
        raise InvalidError.of("For a dataset, name exactly one file of answers.")
    return Import(logs, model, "", {logs[0].task: [Target("", DATASET_TASK)]}, options.dataset)


def _tell_counts(job: job_pb2.Job) -> None:
    """Which lines matched which items."""
    if not job.receipt.HasField("import_counts"):
        return
    counts, items = job.receipt.import_counts, sum(plan.items for plan in job.plan)
    published = job.published_items
    _say(f"{items:,} of {published:,} items have an answer." if published else f"{items:,} items have an answer.")
    if counts.unmatched:
        lines = "line matches" if counts.unmatched == 1 else "lines match"
        _say(f"{counts.unmatched:,} {lines} no item; the first one has {counts.unmatched_example}.")
    if counts.repeated:
        lines = "line answers" if counts.repeated == 1 else "lines answer"
        _say(f"{counts.repeated:,} {lines} an item that already has an answer; the first one counts.")


def _before(client: Client, stored: ImportAnswersResponse) -> job_pb2.Job | None:
    """The run that already holds these logs, unless it failed."""
    if not (stored.known and stored.job_id):
        return None
    job = client.job(stored.job_id)
    return None if job.state in ENDED_EARLY else job


def _tell(logs: list[Log], stored: ImportAnswersResponse) -> None:
    """What the run rests on that the log does not say."""
    _say(f"{counted(stored.answers, 'answer')} of {counted(len(logs), 'task')} imported.")
    if logs[0].shots is None and logs[0].tool != responses.TOOL:
        _say("the log does not say how many examples the prompts have; 0 is assumed. To change it: --shots.")


def _say(sentence: str) -> None:
    print(f"touchstone: {sentence}", file=sys.stderr)


def _pair(text: str) -> tuple[str, str]:
    name, equals, task = text.partition("=") if "=" in text else ("", "", text)
    if not task or (equals and not name):
        raise argparse.ArgumentTypeError("it must be TASK, NAME=TASK or NAME=SUITE/TASK")
    return name, task


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError("it must be a whole number, 0 or more")
    return int(text)
