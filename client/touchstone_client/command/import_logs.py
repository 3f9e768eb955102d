"""`touchstone import`: sample logs of lm_eval and Inspect as finished runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ImportAnswersResponse
from touchstone_client.client import Client
from touchstone_client.command.arguments import leaf, project
from touchstone_client.command.watching import add_watch, follow
from touchstone_client.importing import reading
from touchstone_client.importing.log import Log
from touchstone_client.importing.names import resolve
from touchstone_client.importing.sending import Import

_ENDED = (job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


def add(commands: Any) -> None:
    words = "take sample logs of lm_eval or Inspect as a finished run"
    parser = leaf(
        commands,
        "import",
        words,
        _import,
        "Scores the answers in another tool's logs by our scorers, as a run of ours.",
    )
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="lm_eval's samples_*.jsonl (results_*.json beside them is read) or their folder; Inspect's .eval or .json",
    )
    add("--model", required=True, help="the model's id, as its other runs name it")
    add("--suite", default="", help="the suite that the logs are about; told by their tasks where these are known")
    add(
        "--task",
        dest="tasks",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=[SUITE/]TASK",
        help="the log's task NAME is about the rows of TASK; may be repeated",
    )
    add("--shots", type=_number, metavar="K", help="examples in the prompts, where the log does not tell")
    add(
        "--first-id",
        type=_number,
        metavar="N",
        help="Inspect: the first row's id (default: 0 where there is one, else 1)",
    )
    add("--project-id", type=project, default=0, metavar="N", help="a number to group jobs by")
    add("--again", action="store_true", help="import what was imported before")
    add_watch(parser)


def _import(options: argparse.Namespace) -> int:
    logs = reading.read(options.files, options.shots, options.first_id)
    with Client() as client:
        suite, targets = resolve(logs, client.suites(), options.suite, dict(options.tasks))
        taken = Import(logs, options.model, suite, targets)
        stored = client.import_answers(taken.requests(options.again))
        if (job := _before(client, stored)) is not None:
            _say(f"imported before, as job {job.job_id}. To import it again: --again.")
        else:
            _tell(logs, stored)
            job = client.run(taken.spec(stored.import_id, stored.repeats, options.project_id))
        return follow(client, job, options)


def _before(client: Client, stored: ImportAnswersResponse) -> job_pb2.Job | None:
    """The run that these logs are already, unless it failed."""
    if not (stored.known and stored.job_id):
        return None
    job = client.job(stored.job_id)
    return None if job.state in _ENDED else job


def _tell(logs: list[Log], stored: ImportAnswersResponse) -> None:
    """What the run rests on and the log does not say."""
    _say(f"{stored.answers:,} answers of {len(logs)} {'task' if len(logs) == 1 else 'tasks'} imported.")
    if logs[0].shots is None:
        _say("the log does not tell how many examples the prompts have; 0 is taken. To say it: --shots.")


def _say(sentence: str) -> None:
    print(f"touchstone: {sentence}", file=sys.stderr)


def _pair(text: str) -> tuple[str, str]:
    name, _, task = text.partition("=")
    if not name or not task:
        raise argparse.ArgumentTypeError("it must be NAME=TASK or NAME=SUITE/TASK")
    return name, task


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError("it must be a whole number, 0 or more")
    return int(text)
