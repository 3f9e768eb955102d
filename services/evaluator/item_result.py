"""Turns an item and its answer into an item result.

A result must fit into one NATS message (1 MB): texts are cut after scoring, the response at 256 KB, reasoning and
prompt at 128 KB each, parameters, tool calls and log-probabilities at 64 KB each, and `error` says so. An uploaded
row's messages take no more room than its prompt, its reference 64 KB, its metadata 32 KB. Everything else is small.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TypeVar

from services import numbers
from services.evaluator.datasets.task import AnyTask
from services.evaluator.items.task import Continuation, Item, Response, Scored
from services.evaluator.plugins.contract import PluginError
from services.words import chat
from touchstone.v1 import item_result_pb2
from touchstone.v1.content_pb2 import ToolCall

T = TypeVar("T")

RESPONSE_BYTES = 256 * 1024
REASONING_BYTES = PROMPT_BYTES = 128 * 1024
PARAMETERS_BYTES = CALLS_BYTES = LOGPROBS_BYTES = 64 * 1024
_ERROR_BYTES = 8 * 1024
_NAME_BYTES = 512
_MOST_CHARACTER_BYTES = 4


def prompt_text(item: Item) -> str:
    """The prompt as sent: messages with their roles, separated by blank lines; in log-likelihood mode the context."""
    if item.messages:
        return "\n\n".join(
            f"{message.role}:\n{message.content if message.more is None else chat.text(message.more)}"
            for message in item.messages
        )
    return item.context


async def called(task: AnyTask, call: Callable[[], T]) -> T:
    """What a call gives that scores answers of the task: in a thread where its scorer is a plug-in's, else at once."""
    if task.executor is None:
        return call()
    return await asyncio.get_running_loop().run_in_executor(task.executor, call)


def _scored(task: AnyTask, item: Item, response: Response) -> Scored:
    try:
        return task.score(item, response)
    except PluginError as error:
        if not item.custom_id:  # A suite's task names its item itself.
            raise
        row = f"Row {item.index + 1} of {task.info.title} ({item.custom_id})"
        raise PluginError(f"{row}: {error.message}") from error


def answered(
    task: AnyTask, item: Item, position: int, repeat: int, response: Response, calls: int, identity: str = ""
) -> item_result_pb2.ItemResult:
    """The result of an item that the provider answered. Scores the whole texts, then cuts them. Raises PluginError,
    which names the item or row."""
    scored = _scored(task, item, response)
    result = _base(task, item, position, repeat, calls)
    notes = [response.note] if response.note else []
    result.response = _cut("response", response.text, RESPONSE_BYTES, notes)
    result.reasoning = _cut("reasoning", response.reasoning, REASONING_BYTES, notes)
    result.prompt = _cut("prompt", prompt_text(item), PROMPT_BYTES, notes)
    result.outcome = scored.outcome
    result.prediction = _cut("prediction", scored.prediction, _ERROR_BYTES, notes)
    result.extraction = _cut("", scored.extraction, _NAME_BYTES, [])
    result.latency_ms = response.latency_ms
    # Stored answers and imports pass here, too: an invalid number must not lose an answer.
    read = numbers.whole(response.input_tokens, numbers.MOST_TOKENS)
    written = numbers.whole(response.output_tokens, numbers.MOST_TOKENS)
    # Every prompt has tokens: a server that says 0 does not count them.
    result.input_untold = not read
    result.output_untold = written is None or not (written or read)
    result.input_tokens, result.output_tokens = read or 0, written or 0
    result.finish_reason = _cut("finish reason", response.finish_reason, _NAME_BYTES, notes)
    result.served_model = _cut("model's name", response.served_model, _NAME_BYTES, notes)
    result.continuations.extend(
        item_result_pb2.Continuation(text=c.text, loglikelihood=c.loglikelihood, tokens=c.tokens, greedy=c.greedy)
        for c in response.continuations
    )
    result.ttft_ms = response.ttft_ms
    result.parameters = _cut("parameters", response.parameters, PARAMETERS_BYTES, notes)
    if response.tool_calls:
        _add_calls(result, response, notes)
    if response.logprobs:
        _add_logprobs(result, response, notes)
    result.reasoning_tokens = numbers.whole(response.reasoning_tokens, numbers.MOST_TOKENS) or 0
    cost = numbers.answer_usd(response.cost_usd)
    if cost is not None:
        result.cost_usd = cost
    result.identity = identity
    result.error = _cut("", " ".join(notes), _ERROR_BYTES, [])
    statistics = result.statistics
    for name, value in scored.statistics.items():
        statistics[name] = value
    return result


def reused(
    task: AnyTask, item: Item, position: int, repeat: int, stored: item_result_pb2.ItemResult
) -> item_result_pb2.ItemResult:
    """The result of an item from a stored answer, by the present scorer. No call was made."""
    result = answered(task, item, position, repeat, _response(stored), 0, stored.identity)
    result.reused = True
    result.source_job = stored.source_job
    # A text that was cut for storage stays cut.
    result.error = result.error or stored.error
    return result


def imported(
    task: AnyTask, item: Item, position: int, repeat: int, response: Response, prompt: str, prompt_hash: str
) -> item_result_pb2.ItemResult:
    """The result of an answer that another tool collected, by the present scorer, with the prompt that it sent."""
    result = answered(task, item, position, repeat, response, 0)
    result.reused = True
    result.prompt = _cut("prompt", prompt, PROMPT_BYTES, [])
    result.prompt_hash = prompt_hash
    return result


def is_whole(stored: item_result_pb2.ItemResult) -> bool:
    """Whether the whole response was stored, so that it can be scored again. One exactly as long as a cut one counts as
    cut."""
    calls = sum(map(_size, stored.tool_calls)) if stored.tool_calls else 0
    return (
        len(stored.response.encode()) <= RESPONSE_BYTES - _MOST_CHARACTER_BYTES
        and calls <= CALLS_BYTES - _MOST_CHARACTER_BYTES
    )


def with_prompt(stored: item_result_pb2.ItemResult, item: Item) -> None:
    """Completes a result from the store, which comes without its prompt and the item's other fields."""
    stored.prompt = _cut("prompt", prompt_text(item), PROMPT_BYTES, [])
    if item.custom_id:
        _tell_row(stored, item)


def _response(stored: item_result_pb2.ItemResult) -> Response:
    return Response(
        text=stored.response,
        reasoning=stored.reasoning,
        finish_reason=stored.finish_reason,
        input_tokens=None if stored.input_untold else stored.input_tokens,
        output_tokens=None if stored.output_untold else stored.output_tokens,
        latency_ms=stored.latency_ms,
        served_model=stored.served_model,
        # The provider itself said so: scorers do not read these two from a text.
        refused=stored.outcome == item_result_pb2.OUTCOME_REFUSED,
        input_truncated=stored.outcome == item_result_pb2.OUTCOME_INPUT_TRUNCATED,
        continuations=tuple(Continuation(c.text, c.loglikelihood, c.tokens, c.greedy) for c in stored.continuations),
        parameters=stored.parameters,
        ttft_ms=stored.ttft_ms,
        reasoning_tokens=stored.reasoning_tokens,
        cost_usd=stored.cost_usd if stored.HasField("cost_usd") else None,
        tool_calls=tuple(stored.tool_calls),
        logprobs=tuple(stored.logprobs),
    )


def failed(
    task: AnyTask, item: Item, position: int, repeat: int, message: str, calls: int
) -> item_result_pb2.ItemResult:
    """The result of an item whose calls failed: an infrastructure error, never scored."""
    result = _base(task, item, position, repeat, calls)
    result.prompt = _cut("prompt", prompt_text(item), PROMPT_BYTES, [])
    result.outcome = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    result.input_untold = result.output_untold = True
    result.error = _cut("error", message, _ERROR_BYTES, [])
    return result


def _base(task: AnyTask, item: Item, position: int, repeat: int, calls: int) -> item_result_pb2.ItemResult:
    result = item_result_pb2.ItemResult(
        item=item.index,
        position=position,
        repeat=repeat,
        item_hash=item.hash,
        prompt_hash=item.prompt_hash,
        reference=item.reference,
        group=item.group,
        scorer_version=task.scorer_version,
        calls=calls,
    )
    if item.custom_id:
        _tell_row(result, item)
    return result


def _tell_row(result: item_result_pb2.ItemResult, item: Item) -> None:
    """The fields of an uploaded row. Messages that are too long to be stored whole are left out: cut, they would not be
    valid JSON, and the prompt shows how they begin."""
    result.custom_id = item.custom_id
    result.metadata = item.metadata
    if len(item.messages) > 1 or (item.messages and item.messages[0].more is not None):
        messages = [
            {"role": message.role, "content": message.content}
            if message.more is None
            else chat.written(message.more, pictures=False) | {"role": message.role}
            for message in item.messages
        ]
        text = json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        if len(text) <= PROMPT_BYTES:
            result.messages = text.decode()


def _size(call: ToolCall) -> int:
    return len(call.id.encode()) + len(call.name.encode()) + len(call.arguments.encode())


def _add_calls(result: item_result_pb2.ItemResult, response: Response, notes: list[str]) -> None:
    """As many as fit. Those after one that was cut are left out."""
    whole = sum(map(_size, response.tool_calls))
    left = CALLS_BYTES
    for call in response.tool_calls:
        added = result.tool_calls.add(
            id=_cut("", call.id, _NAME_BYTES, []), name=_cut("", call.name, _NAME_BYTES, []), arguments=call.arguments
        )
        left -= _size(added)
        if left < 0:
            raw = added.arguments.encode()
            added.arguments = raw[: max(0, len(raw) + left)].decode("utf-8", "ignore")
            notes.append(f"The tool calls of {whole} bytes were cut to {CALLS_BYTES} for storage.")
            return


def _add_logprobs(result: item_result_pb2.ItemResult, response: Response, notes: list[str]) -> None:
    """Of as many tokens as fit."""
    left = LOGPROBS_BYTES
    for place, one in enumerate(response.logprobs):
        left -= one.ByteSize() + _MOST_CHARACTER_BYTES
        if left < 0:
            notes.append(f"Of {len(response.logprobs)} log-probabilities, {place} were stored.")
            return
        result.logprobs.append(one)


def _cut(what: str, text: str, most: int, notes: list[str]) -> str:
    # Protobuf does not accept a lone surrogate, which JSON's escapes can produce.
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    notes.append(f"The {what} of {len(raw)} bytes was cut to {most} for storage.")
    return raw[:most].decode("utf-8", "ignore")
