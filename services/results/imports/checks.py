"""Checks of an import. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from services.bus import IMPORTED, IMPORTED_ENDPOINTS
from services.errors import InvalidRequestError
from services.words import refusals
from services.words.job_options import MOST_REPEATS
from services.words.jobs import RECORDED
from touchstone.v1 import suite_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer, ImportedRun

MOST_ANSWERS = 2_000_000
MOST_BYTES = 4 * 1024**3
"""Of an import's texts."""
_MOST_IN_MESSAGE = 1000
_MOST_ITEM = 2**31 // MOST_REPEATS - 1
"""Positions of a job number its answers, repeats among them."""
_MOST_CONTINUATIONS = 200
MOST_TASKS = 500
_RUN_BYTES = 256 * 1024
_NAME_CHARACTERS = 200

# An answer of this very length counts as cut (services/evaluator/item_result.py), so it is one byte less.
RESPONSE_BYTES = 256 * 1024 - 5
REASONING_BYTES = CALLS_BYTES = 128 * 1024
_PROMPT_BYTES = _ROW_BYTES = _CONTINUATION_BYTES = 128 * 1024
_ERROR_BYTES = 8 * 1024


def check_run(run: ImportedRun) -> None:
    """Raises InvalidRequestError."""
    if run.tool not in IMPORTED_ENDPOINTS:
        raise InvalidRequestError(f"tool must be {' or '.join(IMPORTED_ENDPOINTS)}.", "run.tool")
    by_id = run.tool in (IMPORTED, RECORDED)
    if run.dataset_id and (run.suite or not by_id):
        raise InvalidRequestError(
            f"Set either suite or dataset_id. dataset_id is only for the tool {IMPORTED}.",
            "run.dataset_id",
        )
    about = ("dataset_id", run.dataset_id) if run.dataset_id else ("suite", run.suite)
    for field, text in (("model", run.model), about, ("digest", run.digest)):
        if not 0 < len(text) <= _NAME_CHARACTERS:
            raise InvalidRequestError(f"{field} must have between 1 and {_NAME_CHARACTERS} characters.", f"run.{field}")
    if run.mode not in (suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD):
        raise InvalidRequestError(refusals.MODE, "run.mode")
    if by_id and run.mode != suite_pb2.MODE_GENERATE:
        raise InvalidRequestError(f"Answers of the tool {run.tool} are text. Set mode to generate.", "run.mode")
    if len(run.prompt_hashes) > MOST_TASKS or run.ByteSize() > _RUN_BYTES:
        raise InvalidRequestError(
            f"The description of a run must have at most {_RUN_BYTES:,} bytes and {MOST_TASKS} tasks.", "run"
        )


def check_answers(answers: Sequence[ImportedAnswer], before: int, mode: suite_pb2.Mode) -> None:
    """`before` is the number of answers in earlier messages, used to name a wrong answer.

    Raises InvalidRequestError.
    """
    if len(answers) > _MOST_IN_MESSAGE:
        raise InvalidRequestError(f"A message must contain at most {_MOST_IN_MESSAGE:,} answers.", "answers")
    if before + len(answers) > MOST_ANSWERS:
        raise InvalidRequestError(
            f"An import must contain at most {MOST_ANSWERS:,} answers. Import fewer tasks at once.", "answers"
        )
    for place, answer in enumerate(answers, start=before):
        if wrong := _wrong(answer, mode):
            raise InvalidRequestError(f"Answer {place + 1:,}: {wrong}", f"answers[{place - before}]")


def _wrong(answer: ImportedAnswer, mode: suite_pb2.Mode) -> str:
    """What is wrong with an answer, as a sentence; "" when it is right."""
    if not 0 < len(answer.task) <= _NAME_CHARACTERS:
        return f"task must have between 1 and {_NAME_CHARACTERS} characters."
    if not 0 <= answer.item <= _MOST_ITEM:
        return f"item {answer.item:,} is not a row number."
    if not 0 <= answer.repeat < MOST_REPEATS:
        return refusals.between("repeat", 0, MOST_REPEATS - 1)
    if mode == suite_pb2.MODE_LOGLIKELIHOOD and not answer.continuations and not answer.error:
        return "an answer of a log-likelihood run must have continuations."
    if len(answer.continuations) > _MOST_CONTINUATIONS:
        return f"it must have at most {_MOST_CONTINUATIONS} continuations."
    if not math.isfinite(answer.latency_ms) or min(answer.latency_ms, answer.input_tokens, answer.output_tokens) < 0:
        return "times and tokens must be 0 or more."
    for field, text, most in (
        ("row", answer.row, _ROW_BYTES),
        ("prompt", answer.prompt, _PROMPT_BYTES),
        ("response", answer.response, RESPONSE_BYTES),
        ("reasoning", answer.reasoning, REASONING_BYTES),
        ("tool_calls", "".join(c.id + c.name + c.arguments for c in answer.tool_calls), CALLS_BYTES),
        ("error", answer.error, _ERROR_BYTES),
        ("finish_reason", answer.finish_reason, _NAME_CHARACTERS),
        ("continuations", "".join(c.text for c in answer.continuations), _CONTINUATION_BYTES),
    ):
        if len(text) > most or len(text.encode()) > most:
            return f"{field} has more than {most:,} bytes."
    return ""
