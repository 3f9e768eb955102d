"""Logs of Inspect (0.3.285): `.eval`, a ZIP archive with one JSON document per sample, or one JSON document.

A sample's `id` is the data's own, or its number from 1; `epoch` counts from 1. `messages` are the conversation, the
answer last; `output` is the answer. Texts may be in `attachments` under their hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from touchstone.v1.results_service_pb2 import ImportedAnswer
from touchstone_client.importing import texts
from touchstone_client.importing.archive import Archive
from touchstone_client.importing.json_stream import members
from touchstone_client.importing.log import Log, Sample, wrong

TOOL = "inspect"
_SAMPLE_BYTES = 64 * 1024 * 1024
_ARCHIVE_BYTES = 64 * 1024**3
_ATTACHED = "attachment://"
_HEADERS = ("header.json", "_journal/start.json")
_TRANSPORT = frozenset(
    {
        *(
            "max_connections",
            "adaptive_connections",
            "max_retries",
            "timeout",
            "attempt_timeout",
            "stream_idle_timeout",
        ),
        *("cache", "batch", "extra_headers"),
    }
)
"""Settings that do not affect answers, and headers, which may hold a key."""
_MOST_TOKENS = 2**31 - 1


def is_log(file: Path) -> bool:
    return file.suffix in (".eval", ".json")


def read(file: Path, shots: int | None, first_id: int | None) -> Log:
    """`shots` are the examples in the prompts, which the log does not give; `first_id` the id of the first row.

    Raises InvalidError.
    """
    try:
        header = _archive_header(file) if file.suffix == ".eval" else _document_header(file)
    except (ValueError, RecursionError) as error:
        raise wrong(file, "", f"it is not a log of Inspect: {error}.") from None
    spec = _mapping(header.get("eval"))
    if not isinstance(spec.get("task"), str) or not spec["task"]:
        raise wrong(file, "", "it names no task, so it is not a log of Inspect.")
    plan = _mapping(header.get("plan"))
    numbers = _Numbers(spec, first_id)
    read_samples = _archive_samples if file.suffix == ".eval" else _document_samples
    return Log(
        tool=TOOL,
        version=str(_mapping(spec.get("packages")).get("inspect_ai") or ""),
        file=file,
        task=spec["task"].rpartition("/")[2],
        mode="generate",
        shots=shots,
        parameters=_parameters(spec, plan),
        template="endpoint",
        prompt_hash=_prompt_hash(spec, plan),
        completed_at=_date(_mapping(header.get("stats")).get("completed_at") or spec.get("created")),
        samples=lambda: _samples(file, read_samples, numbers),
    )


class _Numbers:
    """Row numbers from ids."""

    def __init__(self, spec: Mapping[str, Any], first_id: int | None) -> None:
        dataset = _mapping(spec.get("dataset"))
        ids = dataset.get("sample_ids")
        ids = ids if isinstance(ids, list) else []
        self._first = first_id if first_id is not None else (0 if 0 in ids or "0" in ids else 1)
        config = _mapping(spec.get("config"))
        whole = (
            not dataset.get("shuffled") and not config.get("sample_id") and not isinstance(config.get("limit"), list)
        )
        # Ids that are not numbers follow the order of the rows, if these were taken from the first one on.
        self._places = {str(name): place for place, name in enumerate(ids)} if whole else {}

    def of(self, sample_id: Any) -> int:
        """Raises ValueError."""
        if isinstance(sample_id, int) or (isinstance(sample_id, str) and sample_id.isdecimal()):
            return int(sample_id) - self._first
        if str(sample_id) in self._places:
            return self._places[str(sample_id)]
        raise ValueError(f"its id {sample_id!r} is not a row number: number the samples, or run them in order")


def _archive_header(file: Path) -> dict[str, Any]:
    archive = Archive(file, _SAMPLE_BYTES, _ARCHIVE_BYTES)
    try:
        there = set(archive.names())
        for name in _HEADERS:
            if name in there:
                return _mapping(json.loads(archive.read(name)))
    finally:
        archive.close()
    raise ValueError("it has no header.json")


def _document_header(file: Path) -> dict[str, Any]:
    header: dict[str, Any] = {}
    with file.open("rb") as opened:
        for name, value in members(opened, "samples", _SAMPLE_BYTES):
            if name == "samples":
                # What follows is not needed, except the version of an old log, which is not read either.
                break
            header[name] = value
    return header


def _archive_samples(file: Path) -> Iterator[tuple[str, Any]]:
    archive = Archive(file, _SAMPLE_BYTES, _ARCHIVE_BYTES)
    try:
        for name in archive.names():
            if name.startswith("samples/") and name.endswith(".json"):
                yield name, json.loads(archive.read(name))
    finally:
        archive.close()


def _document_samples(file: Path) -> Iterator[tuple[str, Any]]:
    with file.open("rb") as opened:
        number = 0
        for name, value in members(opened, "samples", _SAMPLE_BYTES):
            if name == "samples" and value is not None:
                number += 1
                yield f"sample {number:,}", value


def _samples(
    file: Path, read_samples: Callable[[Path], Iterator[tuple[str, Any]]], numbers: _Numbers
) -> Iterator[Sample]:
    found = read_samples(file)
    last = "the first sample"
    while True:
        try:
            place, sample = next(found)
        except StopIteration:
            return
        except (ValueError, RecursionError) as error:
            raise wrong(file, f"after {last}", f"it cannot be read: {error}.") from None
        last = place
        try:
            yield _sample(place, sample, numbers)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise wrong(file, place, f"it cannot be read ({type(error).__name__}: {error}).") from None


def _sample(place: str, sample: Mapping[str, Any], numbers: _Numbers) -> Sample:
    attachments = _mapping(sample.get("attachments"))
    item = numbers.of(sample["id"])
    epoch = sample.get("epoch", 1)
    if item < 0 or not isinstance(epoch, int) or epoch < 1:
        raise ValueError(f"it is row {item}, epoch {epoch}")
    output = _mapping(sample.get("output"))
    answer = ImportedAnswer(item=item, repeat=epoch - 1)
    choices = output.get("choices") or []
    if choices:
        answer.finish_reason = str(choices[0].get("stop_reason") or "")[:100]
    usage = _mapping(output.get("usage"))
    read = [_count(usage.get(f"input_tokens{part}")) for part in ("", "_cache_read", "_cache_write")]
    written = _count(usage.get("output_tokens"))
    if None not in read and written is not None and sum(filter(None, read)) <= _MOST_TOKENS:
        # Both or neither: with a count of input tokens, 0 would mean that none were generated.
        answer.input_tokens, answer.output_tokens = sum(filter(None, read)), written
    seconds = output.get("time")
    answer.latency_ms = seconds * 1000 if isinstance(seconds, int | float) and 0 <= seconds < 1e9 else 0.0
    if error := _mapping(sample.get("error")).get("message"):
        answer.error = f"Inspect had an error: {texts.clean(str(error))[:1000]}"
    elif not choices and not output.get("completion"):
        answer.error = "The log has no answer for it."
    response = output.get("completion") or (_content(choices[0]["message"]["content"], attachments) if choices else "")
    row = _row(sample, attachments)
    texts.put(answer, prompt=_prompt(sample, attachments), response=_attached(str(response), attachments), row=row)
    return Sample(place, item, answer, row)


def _prompt(sample: Mapping[str, Any], attachments: Mapping[str, Any]) -> str:
    """The conversation before the last answer; without one, the input."""
    messages: Sequence[Any] = sample.get("messages") or []
    answers = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    sent = messages[: answers[-1]] if answers else messages
    if not sent:
        given = sample.get("input")
        sent = given if isinstance(given, list) else [{"role": "user", "content": given}]
    return texts.conversation((str(m["role"]), _content(m["content"], attachments)) for m in sent)


def _row(sample: Mapping[str, Any], attachments: Mapping[str, Any]) -> dict[str, Any]:
    """The sample's source. `metadata` often holds the row's own columns; `input` is the sample's name for a text that
    may be anything, so it must not count as a column."""
    given = sample.get("input")
    shown = [_content(m["content"], attachments) for m in given] if isinstance(given, list) else given
    if isinstance(shown, str):
        shown = _attached(shown, attachments)
    return {**_mapping(sample.get("metadata")), "sample": {"input": shown, "choices": sample.get("choices")}}


def _content(content: Any, attachments: Mapping[str, Any]) -> str:
    """The text of a message, without reasoning."""
    if isinstance(content, list):
        parts = (str(part.get("text") or "") for part in content if part.get("type") == "text")
        return "\n".join(_attached(part, attachments) for part in parts)
    return _attached(str(content), attachments)


def _attached(text: str, attachments: Mapping[str, Any]) -> str:
    if not text.startswith(_ATTACHED):
        return text
    return str(attachments.get(text.removeprefix(_ATTACHED), text))


def _parameters(spec: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    asked = {**_mapping(spec.get("model_generate_config")), **_mapping(plan.get("config"))}
    return {name: value for name, value in asked.items() if value is not None and name not in _TRANSPORT}


def _prompt_hash(spec: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    parts = [TOOL, spec.get("task"), spec.get("task_version"), spec.get("task_args"), plan.get("steps")]
    written = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()


def _date(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except (ValueError, TypeError):
        return None


def _count(value: Any) -> int | None:
    """0 if the log has none; None for an impossible count."""
    if not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= _MOST_TOKENS else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
