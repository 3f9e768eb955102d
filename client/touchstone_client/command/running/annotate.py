"""`touchstone annotate`: a person's verdict on an answer."""

from __future__ import annotations

import argparse
from typing import Any

import grpc

from touchstone.v1 import results_service_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_job, leaf, text_or_file, whole
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.tasks import task_of
from touchstone_client.errors import InvalidError, NotFoundError

_WAYS = ("id", "number")


def add(commands: Any) -> None:
    parser = leaf(commands, "annotate", "annotate an answer", _annotate)
    add_job(parser)
    parser.add_argument(
        "item", metavar="ITEM", help="a row's own id, or an item's number, as `touchstone items` shows it"
    )
    words = (
        "golden: an answer to learn from; fix: --answer corrects it; wrong: a wrong answer; none removes the annotation"
    )
    parser.add_argument("verdict", choices=["golden", "fix", "wrong", "none"], help=words)
    words = "with fix: the answer that it should have been; @FILE reads it from a file"
    parser.add_argument("--answer", type=text_or_file, default="", metavar="TEXT", help=words)
    parser.add_argument("--note", default="", metavar="TEXT")
    parser.add_argument("--task", default="", help="required if the job has several")
    parser.add_argument("--repeat", type=whole, default=0, metavar="N", help="which of several answers")
    parser.add_argument("--by", choices=_WAYS, default="", help="what ITEM is, if it could be either")


def _annotate(options: argparse.Namespace) -> int:
    if (options.verdict == "fix") != bool(options.answer):
        options.parser.error("--answer and fix require each other")
    with Client() as client:
        job_id = job_of(client, options.job)
        task, number = _place(client, options, job_id)
        stored = client.annotate(
            job_id,
            task,
            number,
            options.verdict,
            repeat=options.repeat,
            corrected_answer=options.answer,
            note=options.note,
        )
    called = f"{stored.task} {stored.result.item}"
    called += f" ({stored.result.custom_id})" if stored.result.custom_id else ""
    said = {"none": "is not annotated", "fix": "is annotated fix"}.get(
        options.verdict, f"is annotated {options.verdict}"
    )
    print(f"{called} of job {job_id} {said}.")
    return DONE


def _place(client: Client, options: argparse.Namespace, job_id: str) -> tuple[str, int]:
    """Task and number of the item. A row's own id may look like another item's number: then the user must say which is
    meant."""
    word = options.item
    number = int(word) if word.isdecimal() and len(word) < 10 else None
    by_id = None if options.by == "number" else _of_id(client, options, job_id)
    if by_id is not None and number not in (None, by_id.result.item) and not options.by:
        raise InvalidError.of(
            f"{word} is the id of item {by_id.result.item} and may be the number of another one. Say which: --by id "
            "or --by number."
        )
    if by_id is not None:
        return by_id.task, by_id.result.item
    if number is None or options.by == "id":
        raise NotFoundError(f"No item of job {job_id} has the id {word}.", grpc.StatusCode.NOT_FOUND)
    return task_of(client, job_id, options.task), number


def _of_id(client: Client, options: argparse.Namespace, job_id: str) -> results_service_pb2.StoredItem | None:
    found = client.items(job_id, task=options.task, custom_id=options.item)
    return next(found, None)
