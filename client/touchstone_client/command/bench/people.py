"""`touchstone bench export` and `apply`: answers for people to score, in a file that does not say who wrote them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from services.words import rubrics
from services.words.jobs import is_finished
from services.words.refusals import counted
from touchstone.v1 import results_service_pb2
from touchstone.v1.rubric_pb2 import Rubric
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import json_value, leaf, of_files, read_file
from touchstone_client.command.bench.board import add_experiment
from touchstone_client.command.exits import DONE, REFUSED
from touchstone_client.errors import InvalidError, NotFoundError
from touchstone_client.files import unfinished

_MOST_BYTES = 512 * 1024 * 1024
_AT_ONCE = 1_000
"""Ratings in a request."""
_NOTE = 2_000
"""Characters of a note."""
_MOST_SAID = 100
"""Wrong scores that are named."""
_MOST_SKIPPED = 10
"""Cells of deleted jobs that are named."""
_ID_DIGITS, _CHECK_DIGITS = 16, 4
"""Of a cell's id: what names it, and what tells a wrong id from that of an answer that was deleted."""
_WHOLE = 60 * 1024
"""Bytes of an answer up to which files and the service give all of it."""
Rating = results_service_pb2.Rating


def add(verbs: Any) -> None:
    words = "write the answers that you have not rated to a file"
    more = (
        "Writes the answers of an experiment that you have not rated to a JSON file, in random order, without the "
        "names of models and prompts. Fill in the scores, then run `bench apply`. For admins."
    )
    parser = leaf(verbs, "export", words, _export, more)
    add_experiment(parser)
    of_files(parser.add_argument("--export", required=True, metavar="FILE", help="the file to write; - for stdout"))
    parser.add_argument("--overwrite", action="store_true", help="replace a file, and the scores in it")
    words = "store the scores of an exported file"
    more = (
        "Stores the scores that you filled in: all of them, or none if one is wrong. Cells of jobs that were deleted "
        "since are skipped and named. Once more changes nothing."
    )
    parser = leaf(verbs, "apply", words, _apply, more)
    add_experiment(parser)
    of_files(parser.add_argument("--apply", required=True, metavar="FILE", help="the file; - for standard input"))


def cell_id(job_id: str, task: str, item: int, repeat: int) -> str:
    """Of an answer, in files. It does not say which model wrote it. Its last digits show that it is whole."""
    return _checked(sha256(f"{job_id} {task}/{item}/{repeat}".encode()).hexdigest()[:_ID_DIGITS])


def _checked(digits: str) -> str:
    return digits + sha256(digits.encode()).hexdigest()[:_CHECK_DIGITS]


# -- export --------------------------------------------------------------------------------------------------------


def _export(options: argparse.Namespace) -> int:
    path = Path(options.export)
    if options.export != "-" and path.exists() and not options.overwrite:
        raise InvalidError.of(
            f"{path} exists and may hold scores. Apply it first, choose another file, or use --overwrite."
        )
    with Client() as client:
        found = to_rate(client, options.experiment)
    if options.export == "-":
        print(found.text, end="")
    else:
        found.write(path)
    later = f" Not finished: {counted(found.live, 'job')}. Export again later." if found.live else ""
    print(f"touchstone: {counted(found.answers, 'answer')} to rate.{later}", file=sys.stderr)
    return DONE


@dataclass(frozen=True, slots=True)
class ToRate:
    """The file for a person: its text, the number of its answers, and how many jobs may have more later."""

    text: str
    answers: int
    live: int

    def write(self, path: Path) -> None:
        """Whole or not at all. Raises OSError."""
        with unfinished(path) as file:
            file.write(self.text.encode())


def to_rate(client: Client, name: str) -> ToRate:
    """The answers of an experiment that the client's user has not rated. Raises ClientError."""
    experiment = client.experiment(name).experiment
    rubric = rubrics.written(experiment.rubric)
    by_job = []
    for job in experiment.jobs:
        answers = client.unrated(job.job_id, rubric, page_size=500)
        by_job.append([_cell(job.job_id, answer, experiment.rubric) for answer in answers])
    cells = _mixed(by_job, experiment.name)
    document = {"experiment": experiment.name, "rubric": json.loads(rubric), "cells": cells}
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return ToRate(text, len(cells), sum(not is_finished(job) for job in experiment.jobs))


def _cell(job_id: str, answer: results_service_pb2.AnswerToRate, rubric: Rubric) -> dict[str, Any]:
    reference = {"reference": answer.reference} if answer.reference else {}
    return {
        "id": cell_id(job_id, answer.task, answer.item, answer.repeat),
        "prompt": answer.prompt,
        **reference,
        "answer": answer.answer,
        "scores": {criterion.name: None for criterion in rubric.criteria},
        "note": "",
    }


def _mixed(by_job: list[list[dict[str, Any]]], seed: str) -> list[dict[str, Any]]:
    """The jobs' cells in random order. Those of one job stay in theirs, in which their first ones are a random sample
    of it, whenever the rater stops."""
    order = [place for place, cells in enumerate(by_job) for _ in cells]
    Random(seed).shuffle(order)
    waiting = [iter(cells) for cells in by_job]
    return [next(waiting[place]) for place in order]


# -- apply ---------------------------------------------------------------------------------------------------------


def _apply(options: argparse.Namespace) -> int:
    place, cells, document = _file(options.apply)
    with Client() as client:
        experiment = client.experiment(options.experiment).experiment
        _require_same(place, document, experiment)
        answers = _answers(client, experiment)
        said: dict[str, list[Rating]] = {}
        gone: list[str] = []
        wrong: list[str] = []
        ids: set[str] = set()
        pending = notes = 0
        for number, cell in enumerate(cells, start=1):
            called, answer, faults = _named(cell, number, answers)
            if called in ids:
                faults.append("occurs twice in the file")
            ids.add(called)
            if answer is None and called == _checked(called[:_ID_DIGITS]):
                gone.append(called)
                continue
            scores, more = _scores(cell, experiment.rubric)
            faults += more
            wrong += [f"Cell {called} {fault}." for fault in faults]
            if answer is None or faults:
                continue
            if not scores:
                pending += 1
                notes += bool(cell.get("note"))
                continue
            rating = Rating(task=answer.task, item=answer.item, repeat=answer.repeat, note=cell.get("note") or "")
            rating.scores = json.dumps(scores, ensure_ascii=False)
            said.setdefault(answer.job_id, []).append(rating)
        if wrong:
            return _refused(wrong)
        if gone and len(gone) == len(cells):
            raise InvalidError.of(f"No cell of {place} is an answer of {experiment.name}: its jobs were deleted.")
        stored = unchanged = 0
        rubric = rubrics.written(experiment.rubric)
        parts = [
            (job_id, ratings[first : first + _AT_ONCE])
            for job_id, ratings in said.items()
            for first in range(0, len(ratings), _AT_ONCE)
        ]
        with _progress("storing scores", sum(len(part) for _, part in parts)) as done_with:
            for job_id, part in parts:
                try:
                    done = client.rate(job_id, rubric, part)
                except NotFoundError:
                    # Deleted a moment ago.
                    gone += [cell_id(job_id, one.task, one.item, one.repeat) for one in part]
                    continue
                finally:
                    done_with(len(part))
                stored, unchanged = stored + done.stored, unchanged + done.unchanged
    print(f"{counted(stored, 'score')} stored, {unchanged:,} as before, {pending:,} pending.")
    if gone:
        named = f"{', '.join(gone[:_MOST_SKIPPED])}{', …' if len(gone) > _MOST_SKIPPED else ''}"
        print(f"touchstone: {counted(len(gone), 'cell')} skipped, of deleted jobs: {named}.", file=sys.stderr)
    if notes:
        print(f"touchstone: {counted(notes, 'note')} without scores not stored.", file=sys.stderr)
    return DONE


def _answers(
    client: Client, experiment: results_service_pb2.Experiment
) -> dict[str, results_service_pb2.ExperimentRun]:
    """The experiment's answers by the ids of their cells."""
    total = len(experiment.jobs) * len(experiment.prompts) * experiment.scenarios * max(1, experiment.repeats)
    found = {}
    with _progress("reading answers", total) as done_with:
        for run in client.experiment_runs(experiment.name):
            found[cell_id(run.job_id, run.task, run.item, run.repeat)] = run
            done_with(1)
    return found


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """Receives how many more are done: a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda more: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=32), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


def _refused(wrong: list[str]) -> int:
    for sentence in wrong[:_MOST_SAID]:
        print(f"touchstone: {sentence}", file=sys.stderr)
    if len(wrong) > _MOST_SAID:
        print(f"touchstone: {counted(len(wrong) - _MOST_SAID, 'further fault')} not shown.", file=sys.stderr)
    print("touchstone: nothing was stored.", file=sys.stderr)
    return REFUSED


def _file(file: str) -> tuple[str, list[Any], Mapping[str, Any]]:
    """How the file is called, its cells, and all that it holds. Raises InvalidError, and OSError."""
    place, data = read_file(file, _MOST_BYTES)
    try:
        value = json_value(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidError.of(f"{place} is not UTF-8 text.") from error
    except argparse.ArgumentTypeError as error:
        raise InvalidError.of(f"{place}: {error}.") from error
    cells = value.get("cells") if isinstance(value, dict) else None
    if not isinstance(cells, list):
        raise InvalidError.of(f"{place} is not a file that `touchstone bench export` wrote: it has no cells.")
    return place, cells, value


def _require_same(place: str, document: Mapping[str, Any], experiment: results_service_pb2.Experiment) -> None:
    """Raises InvalidError for the file of another experiment, or of another rubric."""
    if document.get("experiment") != experiment.name:
        other = str(document.get("experiment"))[:64]
        raise InvalidError.of(f"{place} belongs to experiment {other!r}, not to {experiment.name}.")
    try:
        digest = rubrics.digest(rubrics.of_value(document["rubric"]))
    except (KeyError, TypeError, ValueError):
        digest = ""
    if digest != rubrics.digest(experiment.rubric):
        raise InvalidError.of(
            f"{place} has another rubric than {experiment.name}. Scores hold under the rubric that they were given "
            "under. Export again."
        )


def _named(
    cell: Any, number: int, answers: Mapping[str, results_service_pb2.ExperimentRun]
) -> tuple[str, results_service_pb2.ExperimentRun | None, list[str]]:
    """What the cell is called, its answer, and what is wrong with these."""
    if not isinstance(cell, dict) or not isinstance(cell.get("id"), str):
        return f"number {number:,}", None, ["has no id"]
    answer = answers.get(cell["id"])
    if answer is None:
        # Anything may stand there: as JSON, nothing of it reaches the terminal as it is.
        plain = re.fullmatch(f"[0-9a-f]{{{_ID_DIGITS + _CHECK_DIGITS}}}", cell["id"])
        return (
            cell["id"] if plain else json.dumps(cell["id"][: 2 * _ID_DIGITS]),
            None,
            ["is not an answer of this experiment"],
        )
    same = cell.get("answer") in (None, answer.answer) or len(answer.answer.encode()) > _WHOLE
    return cell["id"], answer, [] if same else ["has another answer than the experiment; export it again"]


def _scores(cell: Any, rubric: Rubric) -> tuple[dict[str, Any], list[str]]:
    """The cell's scores, empty while it is pending, and every fault in them, as clauses that follow its name."""
    held = cell.get("scores") if isinstance(cell, dict) else None
    if held is not None and not isinstance(held, dict):
        return {}, ["has scores that are not an object"]
    given = {name: score for name, score in (held or {}).items() if score is not None}
    faults = [*_note_faults(cell)]
    unknown = [name for name in given if name not in {criterion.name for criterion in rubric.criteria}]
    faults += [f"scores {name[:80]!r}, which is not a criterion of {rubric.version}" for name in unknown]
    if not given:
        return {}, faults
    found: dict[str, Any] = {}
    for criterion in rubric.criteria:
        try:
            found |= rubrics.scores(Rubric(criteria=[criterion]), given)
        except ValueError as error:
            faults.append(str(error))
    return found, faults


def _note_faults(cell: Any) -> Iterator[str]:
    note = cell.get("note") if isinstance(cell, dict) else None
    if note is not None and not isinstance(note, str):
        yield "has a note that is not a text"
    elif note and len(note) > _NOTE:
        yield f"has a note of {len(note):,} characters; at most {_NOTE:,} are allowed"
    elif note and "\0" in note:
        yield "has a note with a NUL character; remove it"
    elif note and any("\ud800" <= each <= "\udfff" for each in note):
        yield "has a note with half a character; remove it"
