"""Logs of lm_eval 0.4.13: samples_<task>_<date>.jsonl, and results_<date>.json in the same folder.

A line is a sample under one filter: `doc_id` is the row, `doc` its copy, `arguments` what was sent, `resps` what came
back: for each request a list with one answer per repeat. All answers are texts: `["-1.25", "False"]` is a
log-likelihood with its greediness.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from touchstone.v1.item_result_pb2 import Continuation
from touchstone.v1.results_service_pb2 import ImportedAnswer
from touchstone_client.errors import InvalidError
from touchstone_client.importing import texts
from touchstone_client.importing.log import Log, Sample, wrong

TOOL = "lm_eval"
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl")
_LINE_BYTES = 64 * 1024 * 1024
_RESULTS_BYTES = 256 * 1024 * 1024
_MOST_REQUESTS = 400
_TEMPLATE = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "target_delimiter", "fewshot_delimiter",
    "fewshot_config", "num_fewshot", "gen_prefix")  # fmt: skip


def read(file: Path, shots: int | None) -> Log:
    """`shots` is used if the file has no results next to it. Raises InvalidError."""
    named = _NAME.fullmatch(file.name)
    task = named["task"] if named else file.stem.removeprefix("samples_")
    results = _results(file, named["date"]) if named else {}
    first = next(_lines(file), None)
    if first is None:
        raise wrong(file, "", "it has no samples.")
    mode = _mode(file, *first)
    config = _mapping(_mapping(results.get("configs")).get(task))
    told = _mapping(results.get("n-shot")).get(task)
    chat = str(results.get("chat_template_sha") or "")
    return Log(
        tool=TOOL,
        version=str(results.get("lm_eval_version") or ""),
        file=file,
        task=task,
        mode=mode,
        shots=told if isinstance(told, int) else shots,
        parameters=_parameters(results, config) if mode == "generate" else {},
        template=_template(chat, first[1]),
        prompt_hash=_prompt_hash(task, config, results) if config else "",
        completed_at=_date(results.get("date"), file),
        samples=lambda: _samples(file, mode),
    )


def _results(file: Path, date: str) -> Mapping[str, Any]:
    """What lm_eval wrote with the same date, under the name that its output path gave; empty if it does not exist."""
    for beside in sorted(file.parent.glob(f"*_{date}.json")):
        if beside.stat().st_size > _RESULTS_BYTES:
            raise wrong(beside, "", f"it has more than {_RESULTS_BYTES // 1024**2} MB.")
        try:
            return _mapping(json.loads(beside.read_bytes()))
        except (ValueError, RecursionError) as error:
            raise wrong(beside, "", f"it is not JSON ({error}).") from None
    return {}


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(_LINE_BYTES + 1):
            number += 1
            if len(line) > _LINE_BYTES:
                raise wrong(file, f"line {number:,}", f"it has more than {_LINE_BYTES // 1024**2} MB.")
            if not line.strip():
                continue
            try:
                sample = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise wrong(file, f"line {number:,}", f"it is not JSON ({error}).") from None
            if not isinstance(sample, dict):
                raise wrong(file, f"line {number:,}", "it is not a JSON object.")
            yield number, sample


def _mode(file: Path, number: int, sample: Mapping[str, Any]) -> str:
    try:
        answer = sample["resps"][0][0]
    except (KeyError, IndexError, TypeError):
        raise wrong(file, f"line {number:,}", "it has no resps, so it is not a sample of lm_eval.") from None
    if isinstance(answer, str):
        arguments = sample.get("arguments")
        sent = arguments.get("gen_args_0") if isinstance(arguments, dict) else None
        if isinstance(sent, dict) and "arg_1" not in sent:
            raise wrong(file, f"line {number:,}", "it scores a whole text, which no task of Touchstone does.")
        return "generate"
    return "loglikelihood"


def _samples(file: Path, mode: str) -> Iterator[Sample]:
    """The first of several filters: they read the same answers."""
    filter_name: Any = None
    for number, line in _lines(file):
        place = f"line {number:,}"
        filter_name = line.get("filter") if filter_name is None else filter_name
        if line.get("filter") != filter_name:
            continue
        doc_id = line.get("doc_id")
        if not isinstance(doc_id, int) or isinstance(doc_id, bool) or doc_id < 0:
            raise wrong(file, place, f"doc_id is {doc_id!r}; it must be a row number.")
        row = _mapping(line.get("doc"))
        try:
            answers = list(_choices(line) if mode == "loglikelihood" else _texts(line))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise wrong(file, place, f"its answers cannot be read ({type(error).__name__}: {error}).") from None
        for repeat, (answer, prompt, response) in enumerate(answers):
            answer.item, answer.repeat = doc_id, repeat
            texts.put(answer, prompt=prompt, response=response, row=row)
            yield Sample(place, doc_id, answer, row)


def _requests(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    arguments = line["arguments"]
    if len(arguments) > _MOST_REQUESTS:
        raise ValueError(f"{len(arguments)} requests")
    return [arguments[f"gen_args_{number}"] for number in range(len(arguments))]


def _choices(line: Mapping[str, Any]) -> Iterator[tuple[ImportedAnswer, str, str]]:
    """Those after the first context: the requests for `acc_mutual_info` have none."""
    requests = _requests(line)
    context = str(requests[0]["arg_0"])
    answer = ImportedAnswer()
    for request, answered in zip(requests, line["resps"], strict=True):
        if str(request["arg_0"]) == context:
            loglikelihood, greedy = answered[0]
            answer.continuations.append(
                Continuation(
                    text=texts.clean(str(request["arg_1"])),
                    loglikelihood=float(loglikelihood),
                    greedy=str(greedy) == "True",
                )
            )
    yield answer, context, ""


def _texts(line: Mapping[str, Any]) -> Iterator[tuple[ImportedAnswer, str, str]]:
    (request,) = _requests(line)
    (answered,) = line["resps"]
    prompt = _prompt(request["arg_0"])
    for response in answered:
        if not isinstance(response, str):
            raise ValueError("an answer is not a string")
        yield ImportedAnswer(), prompt, response


def _prompt(sent: Any) -> str:
    """A text; or a chat's messages, as JSON in a list."""
    if isinstance(sent, list) and len(sent) == 1:
        (sent,) = sent
    if (messages := _messages(sent)) is not None:
        return texts.conversation(messages)
    return str(sent)


def _messages(sent: Any) -> list[tuple[str, str]] | None:
    if not (isinstance(sent, str) and sent.startswith("[{")):
        return None
    try:
        return [(str(message["role"]), str(message["content"])) for message in json.loads(sent)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _template(chat: str, first: Mapping[str, Any]) -> str:
    """What turned messages into the model's text."""
    try:
        sent = first["arguments"]["gen_args_0"]["arg_0"]
    except (KeyError, TypeError):
        sent = None
    if isinstance(sent, list):
        return "endpoint"
    return f"{TOOL}, chat template {chat[:12]}" if chat else "none"


def _parameters(results: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    own = _mapping(config.get("generation_kwargs"))
    given = _mapping(results.get("config")).get("gen_kwargs")
    return {**own, **(_mapping(given) or ({"gen_kwargs": str(given)} if given else {}))}


def _prompt_hash(task: str, config: Mapping[str, Any], results: Mapping[str, Any]) -> str:
    parts = {name: config.get(name) for name in _TEMPLATE}
    parts["system"] = results.get("system_instruction_sha")
    parts["turns"] = results.get("fewshot_as_multiturn")
    written = json.dumps([TOOL, task, parts], sort_keys=True, default=str)
    return hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()


def _date(date: Any, file: Path) -> datetime | None:
    """lm_eval's seconds since 1970, else the file's."""
    try:
        return datetime.fromtimestamp(float(date if date is not None else file.stat().st_mtime), UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def is_samples(file: Path) -> bool:
    return file.suffix == ".jsonl"


def is_results(file: Path) -> bool:
    """A results file, which is read with the samples that it belongs to."""
    return file.suffix == ".json" and file.name.startswith("results_")


def samples_in(folder: Path) -> list[Path]:
    """Raises InvalidError when there are none."""
    found = sorted(folder.rglob("samples_*.jsonl"))
    if not found:
        raise InvalidError.of(f"{folder} has no samples_*.jsonl. Run lm_eval with --log_samples.")
    return found
