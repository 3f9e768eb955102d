"""Answers that a person found worth learning from, as examples for fine-tuning a chat model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from services.errors import InvalidRequestError
from services.results.datasets.stored_rows import Pictures
from services.results.export.item_rows import Found, read_chunks
from services.results.export.tables import Kind, Row, Table, Value
from services.results.items import filters
from services.results.items.filters import Chosen
from services.results.storage import item_rows
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from services.words import chat
from services.words.jobs import mode_of
from touchstone.v1 import suite_pb2
from touchstone.v1.content_pb2 import Image
from touchstone.v1.results_service_pb2 import Annotation, ExportRequest, ListItemsRequest

RESPONSE_BYTES = 256 * 1024 - 4
PROMPT_BYTES = 128 * 1024 - 4
"""A longer text is, or may be, the beginning of one that an evaluator cut for storage."""

_GOLDEN, _FIX = Annotation.VERDICT_GOLDEN, Annotation.VERDICT_FIX
_READ = ("prompt", "messages", "response", "error", "tool_calls", "parameters", "item")
_CUT = re.compile(r"The (\w+)(?: \w+)? of \d+ bytes (?:was|were) cut to \d+ for storage\.")
_ROLE = re.compile(r"(system|developer|user|assistant|tool):\n")
_NEXT = re.compile(r"\n\n(user|assistant):\n")

_MESSAGE_BYTES = 32
"""The most characters that a message takes as JSON beyond those in a prompt."""


@dataclass(frozen=True, slots=True)
class Golden:
    """The file's table, and how many annotated answers are left out because one of their texts is no longer whole."""

    table: Table
    left_out: int


def golden(
    connection: Connection,
    request: ListItemsRequest,
    format_: ExportRequest.Format,
    visible: Visibility,
    pictures: Pictures | None = None,
) -> Golden:
    """The items that ListItems would list and that are marked golden or have a corrected answer. Without `pictures`,
    or once the dataset is deleted, examples with images are left out.

    Raises as `item_choice.choose`, and InvalidRequestError for another format and for prompts that are not chats.
    """
    if format_ != ExportRequest.FORMAT_JSONL:
        raise InvalidRequestError("Golden examples are written only as JSONL.", "format")
    wanted = ListItemsRequest()
    wanted.CopyFrom(request)
    verdicts = {_GOLDEN, _FIX} & set(request.conditions.verdicts or (_GOLDEN, _FIX))
    if not verdicts:
        raise InvalidRequestError(
            "Golden examples are annotations with the verdict golden or fix.", "items.conditions.verdicts"
        )
    wanted.conditions.verdicts[:] = sorted(verdicts)
    chosen = filters.choose(connection, wanted, visible)
    if mode_of(chosen.job.spec) == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError("A run in log-likelihood mode has no chats. Export its items.", "kind")
    dataset_id = chosen.job.spec.dataset.dataset_id
    there = pictures is not None and bool(dataset_id) and pictures.exist(dataset_id)

    def shown(item: int, messages: list[Value]) -> list[Value]:
        assert pictures is not None
        return _with_pictures(messages, pictures.of(dataset_id, item))

    # Read twice, so that the number is known before the first byte is sent. Pictures are read only to be sent.
    left_out = sum(row is None for row in _rows(connection, chosen, (lambda _, asked: asked) if there else None))
    found = _rows(connection, chosen, shown if there else None)
    return Golden(Table(_COLUMNS, _batches(row for row in found if row is not None), frozenset({"tools"})), left_out)


_COLUMNS = (("messages", Kind.OBJECT), ("tools", Kind.OBJECT))


_BATCH_ROWS = 100

Show = Callable[[int, list[Value]], list[Value]]
"""Messages of an item with its pictures in place of their names."""


def _rows(connection: Connection, chosen: Chosen, show: Show | None) -> Iterator[_Example | None]:
    examples = chosen.job.spec.suite.shots
    for chunk in read_chunks(connection, chosen, _READ):
        for found in chunk:
            yield _row(found, show, in_turns=examples > 0)


def _batches(examples: Iterator[_Example]) -> Iterator[list[Row]]:
    """A batch ends with an example with pictures, which may have 40 MB."""
    batch: list[Row] = []
    for example in examples:
        batch.append(example.row)
        if example.has_pictures or len(batch) >= _BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class _Example:
    row: Row
    has_pictures: bool


def _row(found: Found, show: Show | None, *, in_turns: bool) -> _Example | None:
    """None where the prompt or the answer is not whole. Without `show`, nor is one with pictures."""
    prompt, messages, response, error, tool_calls, parameters, item = found.values
    assert found.annotation is not None
    cut = set(_CUT.findall(error))
    said: dict[str, Value] = {"role": "assistant", "content": found.annotation.corrected_answer}
    if found.annotation.verdict == _GOLDEN:
        said["content"] = response
        if tool_calls:
            said |= {"content": response or None, "tool_calls": item_rows.parsed_json(tool_calls)}
        elif not response:
            return None
        if cut & {"response", "tool"} or len(response.encode()) > RESPONSE_BYTES:
            return None
    asked = _stored_messages(messages) if messages else None
    if asked is None:
        if not prompt or cut & {"prompt", "messages"} or len(prompt.encode()) > PROMPT_BYTES:
            return None
        asked = _split(prompt) if in_turns else _single(prompt)
    if asked is None:
        return None
    # A picture is with the dataset, and here is only its name.
    has_pictures = any(map(_has_picture, asked))
    if has_pictures:
        if show is None:
            return None
        asked = show(item, asked)
    return _Example([[*asked, said], _tools(parameters)], has_pictures)


def _has_picture(message: Value) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(map(_is_picture, content))


def _is_picture(part: Value) -> bool:
    return isinstance(part, dict) and part.get("type") == "image"


def _with_pictures(messages: list[Value], pictures: Mapping[str, Image]) -> list[Value]:
    shown: list[Value] = []
    for message in messages:
        if isinstance(message, dict) and isinstance(content := message.get("content"), list):
            parts = [_picture(part, pictures) if _is_picture(part) else part for part in content]
            shown.append(message | {"content": parts})
        else:
            shown.append(message)
    return shown


def _picture(part: Value, pictures: Mapping[str, Image]) -> Value:
    assert isinstance(part, dict)
    # One picture may be shown twice, more closely the second time.
    detail: dict[str, Value] = {name: value for name, value in part.items() if name == "detail"}
    return {"type": "image_url", "image_url": {"url": chat.data_uri(pictures[str(part["sha256"])]), **detail}}


def _tools(parameters: str) -> Value:
    """The tools that were offered, as fine-tuning takes them; None without any."""
    if '"tools"' not in parameters:
        return None
    offered: list[Value] = [
        {"type": "function", "function": {name: value for name, value in one.items() if value is not None}}
        for one in chat.offered(item_rows.metadata_fields(parameters))
    ]
    return offered or None


def _stored_messages(text: str) -> list[Value] | None:
    try:
        found = item_rows.parsed_json(text)
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def _single(prompt: str) -> list[Value] | None:
    """The message of a prompt with only one, whatever its text looks like; another tool's prompt has no role. None
    where there may be several: an uploaded row's messages are stored with it unless they take too much room as JSON."""
    several = len(_ROLE.findall(prompt)) - 1
    if several > 0:
        as_json = len(json.dumps(prompt, ensure_ascii=False).encode()) + _MESSAGE_BYTES * (several + 1)
        if as_json > PROMPT_BYTES:
            return None
    role = _ROLE.match(prompt)
    if role is None:
        return [{"role": "user", "content": prompt}]
    return [{"role": role[1], "content": prompt[role.end() :]}]


def _split(prompt: str) -> list[Value] | None:
    """A suite's prompt with examples: user and assistant in turns, the user last. None for any other order, as a text
    may look like a turn."""
    first = _ROLE.match(prompt)
    if first is None or first[1] != "user":
        return None
    parts = _NEXT.split(prompt[first.end() :])
    messages: list[Value] = [{"role": "user", "content": parts[0]}]
    for place in range(1, len(parts), 2):
        if parts[place] != ("assistant", "user")[(place // 2) % 2]:
            return None
        messages.append({"role": parts[place], "content": parts[place + 1]})
    return messages if len(messages) % 2 else None
