"""`touchstone dataset upload` and `hub`: creating a dataset."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from services.words import chat
from services.words.enums import DATASET_FORMATS, LAST_ASSISTANT, UPLOAD_FORMATS
from services.words.refusals import counted
from touchstone.v1 import dataset_pb2
from touchstone.v1.dataset_service_pb2 import PreviewDatasetResponse
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_format, count, leaf, of_files, project, text_or_file
from touchstone_client.command.arguments.flags import refusal
from touchstone_client.command.arguments.scoring import add_scoring, last_messages, scoring_of, words
from touchstone_client.command.exits import DONE, REFUSED
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import excerpt, size
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.errors import InvalidError
from touchstone_client.uploading import DatasetOptions

_BAD = (
    Column("line", "line", str, right=True),
    Column("reason", "reason", fold=True),
)
_REASONS = (
    Column("count", "lines", right=True),
    Column("reason", "reason", fold=True),
    Column("lines", "which", fold=True),
)
_FIRST = (
    Column("custom_id", "row"),
    Column("prompt", "last message", excerpt, fold=True),
    Column("reference", "reference", lambda value: excerpt(value, 40)),
)
_TEMPLATE = (
    "the prompt for rows with columns: a user message, or a JSON array of messages, with {{column}} placeholders; "
    "@FILE reads it from a file"
)


_DESCRIPTION = (
    "Uploads all rows of a file, or none: OpenAI batch lines; lines with prompt or messages, and optionally "
    "reference, metadata and custom_id; rows of other projects, such as Alpaca or Inspect; or, with a template, rows "
    "with any columns. `dataset check` says beforehand how they are read."
)
_CHECKED = (
    "Reads a file as `dataset upload` does, and stores nothing: says what becomes prompt and reference, shows the "
    "first rows, and names the rows that do not fit. Exits with 2 unless all rows fit."
)


def add(verbs: Any) -> None:
    parser = leaf(verbs, "upload", "upload a file; prints the dataset's id", _upload, _DESCRIPTION)
    _add_file(parser)
    words = "if the command is repeated with the same id within a day, it creates only one dataset"
    parser.add_argument("--request-id", default="", metavar="ID", help=words)
    parser = leaf(verbs, "check", "say how a file's rows would be read", _check, _CHECKED)
    _add_file(parser)
    parser = leaf(verbs, "hub", "import a split of a Hub data set; prints the dataset's id", _hub)
    parser.add_argument("source", metavar="DATASET", help="the Hub's id, e.g. openai/gsm8k")
    parser.add_argument("--config", default="", help="(default: default)")
    parser.add_argument("--split", required=True, help="e.g. test")
    parser.add_argument("--revision", default="", metavar="COMMIT", help="(default: the newest)")
    parser.add_argument(
        "--limit", type=count, default=0, metavar="N", help="the number of rows, from the first (default: all)"
    )
    parser.add_argument("--template", type=text_or_file, required=True, metavar="TEXT", help=_TEMPLATE)
    words = "if the command is repeated with the same id within a day, it creates only one dataset"
    parser.add_argument("--request-id", default="", metavar="ID", help=words)
    _add_options(parser, "its name on the Hub")


def _add_file(parser: argparse.ArgumentParser) -> None:
    words = "JSON, CSV, Excel, Parquet or YAML, also gzip; - for standard input"
    of_files(parser.add_argument("file", metavar="FILE", help=words))
    words = "what the rows are (default: recognised from the first row)"
    parser.add_argument("--as", dest="kind", choices=[*UPLOAD_FORMATS], default="", help=words)
    parser.add_argument("--template", type=text_or_file, default="", metavar="TEXT", help=_TEMPLATE)
    words = "the visible sheet of an Excel workbook that has the rows (default: the first)"
    parser.add_argument("--sheet", default="", metavar="NAME", help=words)
    _add_options(parser, "the file's name")


def _add_options(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--name", default="", help=f"what the dataset is called (default: {name})")
    words = "column with the row ids (default: custom_id if there is one)"
    parser.add_argument("--custom-id-field", default="", metavar="FIELD", help=words)
    words = (
        "how to treat a last message of the assistant: reference removes it from the prompt and compares answers "
        "with it, prefill sends it as the start of the answer, refuse reports every such line; required if the "
        "file has one"
    )
    parser.add_argument("--last-assistant", choices=[*LAST_ASSISTANT], default="", help=words)
    parser.add_argument("--project-id", type=project, default=0, metavar="N", help="a number to group datasets by")
    add_scoring(parser, "exact_match")
    add_format(parser)


def _check(options: argparse.Namespace) -> int:
    source, wanted = _file(options)
    with Client() as client, _progress(_size(options)) as sent:
        found = client.preview_dataset(source, sent=sent, **wanted)
    rows = [(row.custom_id, chat.text(row.messages[-1]), row.reference) for row in found.first_rows]
    tables = [Table(_FIRST, rows)] if rows else []
    bad = Table(_BAD, [(line.line, line.reason) for line in found.bad_lines])
    if bad.rows:
        tables.append(_wrong(found.reasons, bad))
    show(
        Report(
            tables,
            csv=None if rows else bad,
            notes=_sentences(found),
            document=document(found),
        ),
        options.format,
    )
    return REFUSED if found.why or found.bad_lines_total else DONE


def _sentences(found: PreviewDatasetResponse) -> list[str]:
    dataset = found.dataset
    if found.why:
        said = [found.why]
        if found.columns:
            said.append(f"Columns: {', '.join(found.columns)}.")
    else:
        said = [
            f"{dataset.reading}.",
            f"{dataset.rows:,} of {counted(found.rows_found, 'row')} fit, {dataset.rows_with_reference:,} with a "
            f"reference; about {counted(dataset.input_tokens, 'token')} of input.",
        ]
    if found.other_lines:
        said.append(_others(found.other_lines, "row"))
    elif not found.reasons and (more := found.bad_lines_total - len(found.bad_lines)) > 0:
        said.append(f"{more:,} more rows do not fit.")
    if len(found.sheets) > 1:
        said.append(f"--sheet reads another of the sheets: {', '.join(found.sheets)}.")
    others = [one for one in found.readings if found.why or one.format != dataset.format]
    return said + [f"--as {DATASET_FORMATS.of(one.format)}: {one.reading}." for one in others]


def _file(options: argparse.Namespace) -> tuple[Any, Any]:
    """The file, and what it is to become."""
    wanted = _options(options) | {"sheet": options.sheet}
    if options.kind:
        wanted["format"] = options.kind
    return (sys.stdin.buffer if options.file == "-" else Path(options.file)), wanted


def _size(options: argparse.Namespace) -> int | None:
    """None of standard input."""
    return None if options.file == "-" else os.path.getsize(options.file)


def _upload(options: argparse.Namespace) -> int:
    source, wanted = _file(options)
    with Client() as client:
        try:
            with _progress(_size(options)) as sent:
                dataset = client.upload_dataset(source, sent=sent, request_id=options.request_id, **wanted)
        except InvalidError as error:
            if not error.lines:
                raise
            return _refused(error, options.format)
    return _kept(dataset, options.format)


def _hub(options: argparse.Namespace) -> int:
    wanted = _options(options)
    with Client() as client:
        dataset = client.create_hub_dataset(
            options.source,
            config=options.config,
            split=options.split,
            revision=options.revision,
            limit=options.limit,
            request_id=options.request_id,
            **wanted,
        )
    return _kept(dataset, options.format)


def _options(options: argparse.Namespace) -> Any:
    wanted: DatasetOptions = {
        "name": options.name,
        "template": options.template,
        "project_id": options.project_id,
        "custom_id_field": options.custom_id_field,
        "last_assistant": options.last_assistant,
    }
    scoring = scoring_of(options)
    return wanted if scoring is None else {**wanted, "scoring": scoring}


def _kept(dataset: dataset_pb2.Dataset, format: str) -> int:
    """Only the id on stdout, for scripts; in JSON the document."""
    if format != "table":
        columns = [Column(name, name) for name in ("dataset_id", "name", "rows", "rows_with_reference", "bytes")]
        row = [getattr(dataset, column.name) for column in columns]
        show(Report([Table(columns, [row])], document=document(dataset)), format)
        return DONE
    print(dataset.dataset_id)
    scored = f"{dataset.rows_with_reference:,} with a reference, scored by {words(dataset.scoring)}"
    told = scored if dataset.rows_with_reference else "none with a reference: answers are stored but not scored"
    tokens = counted(dataset.input_tokens, "token")
    rows = f"{counted(dataset.rows, 'row')}, {size(dataset.bytes)}, about {tokens} of input"
    print(f"{dataset.name}: {rows}; {told}.", file=sys.stderr)
    if dataset.reading:
        print(f"{dataset.reading}.", file=sys.stderr)
    if last := last_messages(dataset.last_assistant):
        print(f"In {counted(dataset.rows_with_last_assistant, 'row')} {last}.", file=sys.stderr)
    return DONE


def _refused(error: InvalidError, format: str) -> int:
    """The wrong lines: on stderr after the error, or on stdout for programs."""
    rows = [(bad.line, bad.reason) for bad in error.lines]
    sentence = refusal(error)
    bad = Table(_BAD, rows)
    notes = [_others(error.other_lines, "line")] if error.other_lines else []
    if not error.reasons and (more := error.lines_total - len(rows)) > 0:
        notes = [f"{more:,} more lines are wrong."]
    report = Report(
        [_wrong(error.reasons, bad)],
        notes=notes,
        csv=bad,
        document={
            "error": sentence,
            "lines": [{"line": line, "reason": reason} for line, reason in rows],
            "lines_total": max(error.lines_total, len(rows)),
            "reasons": [{"reason": one.reason, "count": one.count, "lines": list(one.lines)} for one in error.reasons],
            "other_lines": error.other_lines,
        },
    )
    print(f"touchstone: {sentence}", file=sys.stderr)
    show(report, format, sys.stderr if format == "table" else None)
    return REFUSED


def _wrong(reasons: Sequence[dataset_pb2.BadLineReason], bad: Table) -> Table:
    """The wrong lines by reason, or one by one where a service of an earlier version does not group them."""
    if not reasons:
        return bad
    return Table(_REASONS, [(one.count, one.reason, _which(one)) for one in reasons])


def _which(group: dataset_pb2.BadLineReason) -> str:
    more = ", …" if group.count > len(group.lines) else ""
    return ", ".join(f"{line:,}" for line in group.lines) + more


def _others(count: int, what: str) -> str:
    return f"{counted(count, f'further {what}')} {'has' if count == 1 else 'have'} other reasons."


@contextmanager
def _progress(total: int | None) -> Iterator[Callable[[int], object] | None]:
    """Receives the number of bytes sent: a bar on a terminal, nothing elsewhere. Without a total the bar has no end."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=32), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task("sending", total=total)

        def sent(so_far: int) -> None:
            done = total is not None and so_far >= total
            bar.update(task, completed=so_far, description="checking" if done else "sending")

        yield sent
