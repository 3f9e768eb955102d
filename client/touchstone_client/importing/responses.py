"""Files of answers: JSON lines, also gzipped, each with the item that it answers and what the model wrote.

An id or the item's text identifies the item. Where a line has several fields for the same thing, the first one counts.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from touchstone.v1.results_service_pb2 import ImportedAnswer
from touchstone_client.errors import InvalidError
from touchstone_client.importing import texts
from touchstone_client.importing.log import Log, Sample, wrong

TOOL = "imported"
RESPONSE = ("response", "responses", "output", "outputs", "prediction", "completion", "generation")
ID = ("id", "custom_id", "doc_id", "position", "index")
QUESTION = ("question", "problem")
PROMPT = ("prompt", "messages")
MODEL = ("model", "generator")
REFERENCE = ("reference", "target", "answer")

_GZIP = b"\x1f\x8b"
_LINE_BYTES = 16 * 1024 * 1024
_FILE_BYTES = 4 * 1024**3
_MOST_LINES = 2_000_000
_MOST_MODELS = 5
"""The fields that an error names."""


def is_responses(file: Path) -> bool:
    """JSON lines that are not lm_eval's samples, by their name or first line; gzipped ones never are."""
    if file.name.endswith(".gz"):
        return True
    if file.suffix != ".jsonl" or file.name.startswith("samples_"):
        return False
    try:
        first = next(_lines(file), None)
    except InvalidError:
        return True
    return first is None or "resps" not in first[1]


def read(file: Path, shots: int | None) -> Log:
    """Reads the whole file once, so that an invalid line is reported before anything is sent. Raises InvalidError."""
    models: dict[str, None] = {}
    for number, line in _lines(file):
        _sample(file, number, 0, line)
        if model := _text(line, MODEL):
            models[model] = None
    return Log(
        tool=TOOL,
        version="",
        file=file,
        task=file.name.removesuffix(".gz").removesuffix(".jsonl"),
        mode="generate",
        shots=shots,
        parameters={},
        template="",
        prompt_hash="",
        completed_at=datetime.fromtimestamp(file.stat().st_mtime, UTC),
        samples=lambda: _samples(file),
        models=tuple(models)[:_MOST_MODELS],
    )


def _samples(file: Path) -> Iterator[Sample]:
    for place, (number, line) in enumerate(_lines(file)):
        yield _sample(file, number, place, line)


def _sample(file: Path, number: int, place: int, line: Mapping[str, Any]) -> Sample:
    where = f"line {number:,}"
    row = {"id": _id(line), "question": _text(line, QUESTION), "prompt": _prompt(line)}
    row = {name: text for name, text in row.items() if text}
    if not row:
        names = ", ".join((*ID, *QUESTION, *PROMPT))
        raise wrong(file, where, f"it does not say which item it answers. Add one of: {names}.")
    if reference := _text(line, REFERENCE):
        row["reference"] = reference
    name = next((name for name in RESPONSE if name in line), "")
    if not name:
        raise wrong(file, where, f"it has no response. Add one of: {', '.join(RESPONSE)}.")
    answer = ImportedAnswer(item=place)
    answer.finish_reason = texts.clean(_text(line, ("finish_reason",)))[:100]
    try:
        response = _response(line[name], answer)
    except ValueError as error:
        raise wrong(file, where, f"its {name} {error}.") from None
    if response is None:
        answer.error = "The line has no answer: its response is null."
    texts.put(answer, prompt=row.get("prompt", ""), response=response or "", row=row)
    return Sample(where, place, answer, row)


def _response(value: Any, answer: ImportedAnswer) -> str | None:
    """The first of several; None for null. Raises ValueError with a clause."""
    if isinstance(value, list):
        if not value:
            raise ValueError("is an empty list")
        value = value[0]
    if isinstance(value, dict):
        return _of_batch(value, answer)
    if value is not None and not isinstance(value, str):
        raise ValueError("must be a string, a list of strings, or null")
    return value


def _of_batch(value: Mapping[str, Any], answer: ImportedAnswer) -> str | None:
    """The answer to a line of OpenAI's batch API. Raises ValueError."""
    try:
        choice = value["body"]["choices"][0]
        text = choice["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise ValueError("is an object without body.choices[0].message.content") from None
    if text is not None and not isinstance(text, str):
        raise ValueError("must have a string as its content")
    answer.finish_reason = texts.clean(str(choice.get("finish_reason") or ""))[:100]
    return text


def _id(line: Mapping[str, Any]) -> str:
    for name in ID:
        value = line.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return texts.clean(str(value).strip())
    return ""


def _prompt(line: Mapping[str, Any]) -> str:
    prompt = next((line[name] for name in PROMPT if line.get(name)), "")
    if isinstance(prompt, list):
        try:
            return texts.conversation((str(m["role"]), str(m["content"])) for m in prompt)
        except (KeyError, TypeError):
            return ""
    return prompt if isinstance(prompt, str) else ""


def _text(line: Mapping[str, Any], names: Sequence[str]) -> str:
    value = next((line[name] for name in names if line.get(name) is not None), "")
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with _opened(file) as lines:
            yield from _parsed(file, lines)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise wrong(file, "", f"it cannot be unpacked ({error}).") from None


def _opened(file: Path) -> BinaryIO:
    opened = file.open("rb")
    packed = opened.read(len(_GZIP)) == _GZIP
    opened.seek(0)
    if not packed:
        return opened
    opened.close()
    return cast("BinaryIO", gzip.open(file, "rb"))


def _parsed(file: Path, lines: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    number = size = found = 0
    while raw := lines.readline(_LINE_BYTES + 1):
        number += 1
        size += len(raw)
        where = f"line {number:,}"
        if len(raw) > _LINE_BYTES:
            raise wrong(file, where, f"it has more than {_LINE_BYTES // 1024**2} MB.")
        if size > _FILE_BYTES:
            raise wrong(file, where, f"the file has more than {_FILE_BYTES // 1024**3} GB.")
        if not raw.strip():
            continue
        found += 1
        if found > _MOST_LINES:
            raise wrong(file, where, f"the file has more than {_MOST_LINES:,} lines.")
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise wrong(file, where, f"it is not JSON ({error}).") from None
        if not isinstance(line, dict):
            raise wrong(file, where, "it is not a JSON object.")
        yield number, line
    if not found:
        raise wrong(file, "", "it has no lines.")
