"""A job's items as the output of OpenAI's Batch API: a line for each request, or a table for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from services import numbers
from services.errors import InvalidRequestError
from services.results.export.item_rows import Found, read_chunks
from services.results.export.tables import Kind, Row, Table, Value, finite
from services.results.items import filters
from services.results.items.filters import Chosen
from services.results.storage import item_rows, text_retention
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import ERROR
from services.results.visibility import Visibility
from services.words import chat
from services.words.enums import OUTCOMES, VERDICTS
from services.words.jobs import mode_of
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.results_service_pb2 import ExportRequest, ListItemsRequest

MOST_METADATA_COLUMNS = 100

_FAILED = "infrastructure_error"
_DROPPED = "text_dropped"
_DROPPED_WORDS = "The text of this answer was dropped because the answer store was full."
_READ = (
    *('"custom_id"', "task", "item", "repeat", "attempt", "outcome", "response", "reasoning", "prediction"),
    *("reference", "finish_reason", "latency_ms", "input_tokens", "output_tokens", "reasoning_tokens"),
    *("cost_usd", "error", "served_model", "metadata", "tool_calls", "logprobs"),
)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A row of `items`, in the order of _READ."""

    custom_id: str
    task: str
    item: int
    repeat: int
    attempt: int
    outcome: int
    response: str
    reasoning: str
    prediction: str
    reference: str
    finish_reason: str
    latency_ms: float
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int
    cost_usd: float | None
    error: str
    served_model: str
    metadata: str
    tool_calls: str | None
    logprobs: str | None

    @property
    def said(self) -> str:
        """Its text, and its tool calls a line each."""
        return chat.answer_text(self.response, chat.read_calls(self.tool_calls)) if self.tool_calls else self.response

    @property
    def name(self) -> str:
        """Its own id, or a suite's substitute for one."""
        return self.custom_id or f"{self.task}-{self.item}" + (f"-{self.repeat}" if self.repeat else "")


@dataclass(frozen=True, slots=True)
class _Run:
    """The job, and up to which attempt its texts were dropped."""

    job: job_pb2.Job
    dropped_attempt: int

    def failure(self, answer: _Answer) -> tuple[str, str] | None:
        """Why there is no response, as a code and in words."""
        if answer.outcome == ERROR:
            return _FAILED, answer.error
        dropped = answer.attempt <= self.dropped_attempt and not (answer.response or answer.tool_calls)
        return (_DROPPED, _DROPPED_WORDS) if dropped else None


def batch_output(
    connection: Connection, request: ListItemsRequest, format_: ExportRequest.Format, visible: Visibility
) -> Table:
    """The items that ListItems would list, in its order. Raises as `item_choice.choose`, and InvalidRequestError for
    another format and for answers that are not texts."""
    if format_ not in (ExportRequest.FORMAT_JSONL, ExportRequest.FORMAT_CSV):
        raise InvalidRequestError("Batch output is written only as JSONL or CSV.", "format")
    chosen = filters.choose(connection, request, visible)
    if mode_of(chosen.job.spec) == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError("A run in log-likelihood mode has no responses. Export its items.", "kind")
    run = _Run(chosen.job, text_retention.dropped_attempt(connection, chosen.job.job_id))
    chunks = read_chunks(connection, chosen, _READ)
    if format_ == ExportRequest.FORMAT_CSV:
        names = _metadata_fields(connection, chosen)
        columns = [*_CSV_COLUMNS, *((f"metadata.{name}", Kind.ANY) for name in names)]
        return Table(columns, ([_cells(run, found, names) for found in chunk] for chunk in chunks))
    return Table(_LINE_COLUMNS, _lines(run, chunks))


# -- lines ------------------------------------------------------------------------------------------------------------

_LINE_COLUMNS = (
    *(("id", Kind.TEXT), ("custom_id", Kind.TEXT)),
    *(("response", Kind.OBJECT), ("error", Kind.OBJECT)),
)


def _lines(run: _Run, chunks: Iterator[list[Found]]) -> Iterator[list[Row]]:
    for chunk in chunks:
        yield [_line(run, _Answer(*found.values)) for found in chunk]


def _line(run: _Run, answer: _Answer) -> Row:
    key = sha256(f"{run.job.job_id}/{answer.task}/{answer.item}/{answer.repeat}".encode()).hexdigest()
    failed = run.failure(answer)
    line_id = f"batch_req_{key[:32]}"
    if failed is not None:
        code, message = failed
        return line_id, answer.name, None, {"code": code, "message": message}
    response: Value = {"status_code": 200, "request_id": f"req_{key[:32]}", "body": _body(run, answer, key)}
    return line_id, answer.name, response, None


def _body(run: _Run, answer: _Answer, key: str) -> Value:
    """A chat completion. `created` is the job's: the time of a single answer is not stored. `note` is not one of
    OpenAI's fields; it says that a text was cut for storage, or why the provider refused."""
    message: dict[str, Value] = {"role": "assistant", "content": answer.response}
    if answer.reasoning:
        message["reasoning"] = answer.reasoning
    if answer.tool_calls:
        message |= {"content": answer.response or None, "tool_calls": item_rows.parsed_json(answer.tool_calls)}
    choice: dict[str, Value] = {"index": 0, "message": message, "finish_reason": answer.finish_reason or "stop"}
    if answer.logprobs:
        choice["logprobs"] = {"content": item_rows.parsed_json(answer.logprobs)}
    body: dict[str, Value] = {
        "id": f"chatcmpl-{key[:32]}",
        "object": "chat.completion",
        "created": run.job.created_at.seconds,
        "model": answer.served_model or run.job.spec.model,
        "choices": [choice],
        "usage": _usage(answer),
    }
    return body | ({"note": answer.error} if answer.error else {})


def _usage(answer: _Answer) -> Value:
    """null where the provider does not give every count: OpenAI's clients reject a missing one."""
    read, written = answer.input_tokens, answer.output_tokens
    if read is None or written is None:
        return None
    usage: dict[str, Value] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if answer.reasoning_tokens:
        usage["completion_tokens_details"] = {"reasoning_tokens": answer.reasoning_tokens}
    return usage


# -- the table --------------------------------------------------------------------------------------------------------

_CSV_COLUMNS = (
    *((name, Kind.TEXT) for name in ("custom_id", "status", "response", "reference")),
    ("score", Kind.NUMBER),
    ("prediction", Kind.TEXT),
    ("latency_ms", Kind.NUMBER),
    *((name, Kind.WHOLE) for name in ("input_tokens", "output_tokens")),
    ("cost_usd", Kind.NUMBER),
    *((name, Kind.TEXT) for name in ("error", "verdict", "corrected_answer", "note")),
)


def _cells(run: _Run, found: Found, names: list[str]) -> Row:
    answer, held = _Answer(*found.values), found.annotation
    failed = run.failure(answer)
    values = item_rows.metadata_fields(answer.metadata) if names else {}
    return [
        answer.name,
        OUTCOMES.of(answer.outcome),
        answer.said,
        answer.reference,
        found.score,
        answer.prediction,
        finite(answer.latency_ms),
        answer.input_tokens,
        answer.output_tokens,
        numbers.answer_usd(answer.cost_usd),
        failed[1] if failed is not None else answer.error,
        *((VERDICTS.of(held.verdict), held.corrected_answer, held.note) if held is not None else ("", "", "")),
        *(values.get(name) for name in names),
    ]


def _metadata_fields(connection: Connection, chosen: Chosen) -> list[str]:
    """Names in the order in which they first appear in the chosen items."""
    where = chosen.parameters | {"most": MOST_METADATA_COLUMNS}
    return [name for (name,) in connection.execute(chosen.sql + query("export/metadata_fields"), where).fetchall()]
