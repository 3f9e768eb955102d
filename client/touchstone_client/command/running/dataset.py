"""`touchstone dataset`: uploaded rows to run models on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

from services.words import chat
from services.words.enums import DATASET_FORMATS
from services.words.refusals import counted
from touchstone.v1 import dataset_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments import scoring
from touchstone_client.command.arguments.declaring import add_format, add_limit, group, leaf, project
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import excerpt, moment, size, text, when
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.running import dataset_upload

_COLUMNS = (
    Column("dataset_id", "dataset"),
    Column("name", "name", lambda name: excerpt(name, 40)),
    Column("rows", "rows", right=True),
    Column("rows_with_reference", "scored", right=True, extra=True),
    Column("scorer", "scorer", extra=True),
    Column("bytes", "size", size, right=True, extra=True),
    Column("input_tokens", "tokens", right=True, extra=True),
    Column("format", "format", extra=True),
    Column("owner", "owner", extra=True),
    Column("project_id", "project", lambda number: str(number or ""), extra=True),
    Column("uploaded_at", "uploaded", when),
)
_ROWS = (
    Column("custom_id", "row"),
    Column("prompt", "last message", excerpt, fold=True),
    Column("messages", "messages", lambda messages: str(len(messages)), right=True, extra=True),
    Column("reference", "reference", lambda value: excerpt(_json(value), 30)),
    Column("metadata", "metadata", lambda value: excerpt(_json(value), 40), extra=True),
    Column("sampling", ""),
    Column("stop", ""),
)


def add(commands: Any) -> None:
    verbs = group(commands, "dataset", "manage datasets: your own rows for models")
    dataset_upload.add(verbs)
    parser = leaf(verbs, "list", "list datasets, newest first", _list)
    parser.add_argument("--query", default="", metavar="TEXT", help="text that the name contains")
    parser.add_argument("--owner", default="", metavar="USER")
    parser.add_argument("--project-id", type=project, default=0, metavar="N")
    add_limit(parser, 50, "datasets")
    add_format(parser)
    parser = leaf(verbs, "show", "show a dataset", _show)
    _add_dataset(parser)
    add_format(parser)
    parser = leaf(verbs, "rows", "show the first rows of a dataset", _rows)
    _add_dataset(parser)
    add_limit(parser, 20, "rows")
    add_format(parser)
    more = " Finished runs keep their results and answers, but cannot be scored again. `dataset show` counts them."
    parser = leaf(verbs, "delete", "remove a dataset", _delete, f"Removes a dataset.{more}")
    _add_dataset(parser)


def _add_dataset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help="a dataset's id, ds_…")


def _list(options: argparse.Namespace) -> int:
    with Client() as client:
        found = client.datasets(options.query, owner=options.owner, project_id=options.project_id)
        rows = [_row(dataset) for dataset in islice(found, options.limit)]
    notes = []
    if not rows:
        narrowed = options.query or options.owner or options.project_id
        notes = [
            "No datasets match." if narrowed else "There are no datasets. Upload one: touchstone dataset upload FILE"
        ]
    show(Report([Table(_COLUMNS, rows)], notes=notes), options.format)
    return DONE


def _row(dataset: dataset_pb2.Dataset) -> Sequence[Any]:
    return (
        dataset.dataset_id,
        dataset.name,
        dataset.rows,
        dataset.rows_with_reference,
        dataset.scoring.scorer,
        dataset.bytes,
        dataset.input_tokens,
        _format(dataset),
        dataset.owner,
        dataset.project_id,
        moment(dataset.uploaded_at),
    )


def _format(dataset: dataset_pb2.Dataset) -> str:
    return DATASET_FORMATS.of(dataset.format, "unspecified")


def _show(options: argparse.Namespace) -> int:
    with Client() as client:
        found = client.dataset(options.dataset)
    dataset = found.dataset
    source = dataset.source
    facts = {
        "dataset": dataset.dataset_id,
        "name": dataset.name,
        "format": _format(dataset),
        "read as": dataset.reading,
        "rows": f"{dataset.rows:,}",
        "with reference": f"{dataset.rows_with_reference:,}",
        "groups": f"{dataset.groups:,} by {dataset.scoring.group_field}" if dataset.groups else "",
        "last message": scoring.last_messages(dataset.last_assistant),
        "scored by": scoring.words(dataset.scoring),
        "size": size(dataset.bytes),
        "tokens": f"about {dataset.input_tokens:,} of input",
        "longest prompt": size(dataset.longest_prompt_bytes),
        "metadata": ", ".join(dataset.metadata_fields),
        "template": dataset.template,
        "from": f"{source.dataset} {source.config} {source.split} {source.revision}".strip(),
        "models named": ", ".join(dataset.models),
        "owner": dataset.owner,
        "project": str(dataset.project_id or ""),
        "uploaded": when(moment(dataset.uploaded_at)),
        "digest": dataset.digest,
        "jobs now": text(found.live_jobs),
        "jobs finished": text(found.finished_jobs),
    }
    columns = (Column("field", "field"), Column("value", "value", fold=True, whole=True))
    table = Table(columns, [(name, value) for name, value in facts.items() if value])
    flat = Table(_COLUMNS, [_row(dataset)])
    known = {**document(dataset), "live_jobs": found.live_jobs, "finished_jobs": found.finished_jobs}
    show(Report([table], document=known, csv=flat), options.format)
    return DONE


def _rows(options: argparse.Namespace) -> int:
    with Client() as client:
        rows = [_content(row) for row in islice(client.dataset_rows(options.dataset), options.limit)]
    show(Report([Table(_ROWS, rows)]), options.format)
    return DONE


def _content(row: dataset_pb2.DatasetRow) -> Sequence[Any]:
    return (
        row.custom_id,
        chat.text(row.messages[-1]) if row.messages else "",
        [chat.written(message) for message in row.messages],
        _value(row.reference),
        _value(row.metadata),
        document(row.sampling),
        list(row.stop),
    )


def _value(stored: str) -> Any:
    """The parsed JSON; a text that was cut is no longer JSON."""
    try:
        return json.loads(stored) if stored else None
    except ValueError:
        return stored


def _json(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _delete(options: argparse.Namespace) -> int:
    with Client() as client:
        finished = client.delete_dataset(options.dataset).finished_jobs
    print(f"{options.dataset} is removed.{_what_stays(finished)}")
    return DONE


def _what_stays(finished: int) -> str:
    if not finished:
        return ""
    keep = "keeps its" if finished == 1 else "keep their"
    return (
        f" {counted(finished, 'finished run')} over it {keep} results and answers, but can no longer be scored again."
    )
