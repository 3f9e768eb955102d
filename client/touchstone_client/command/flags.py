"""Sentences of the services in the words of the command line: fields of requests become its arguments."""

from __future__ import annotations

import re

from touchstone_client.errors import InvalidError, RefusedError

_SAME = (
    "alias", "answer_match", "answer_pattern", "budget_usd", "choices", "config", "context_length", "custom_id",
    "custom_id_field", "days", "endpoint", "fields", "label", "last_assistant", "limit", "max_tokens", "metric",
    "mode", "model", "name", "note", "priority", "project_id", "provider_batch", "reading", "reason",
    "reference_field", "repeat_penalty", "repeats", "request_id", "revision", "scorer", "seed", "shots", "split",
    "stream", "suite", "superseded_by", "task", "tasks", "temperature", "template", "time_zone", "tolerance",
    "top_k", "top_p", "webhook_url",
)  # fmt: skip
_FLAGS = {
    **{field: f"--{field.replace('_', '-')}" for field in _SAME},
    "any_job": "--reuse",
    "baseline_job_id": "--baseline",
    "corrected_answer": "--answer",
    "cron": "the cron expression",
    "dataset_id": "--dataset",
    "extra_json": "--custom-config",
    "job_id": "--job",
    "labels": "--label",
    "metadata_field": "--metadata",
    "metadata_value": "--metadata",
    "num_ctx": "--context-length",
    "num_predict": "--max-tokens",
    "only_job_id": "--only",
    "time_limit_s": "--time-limit",
}
_PATH = r"(?:(?:spec|config|params|reuse|items|sampling|suite|dataset|scoring|options|conditions|source)\.)+"
_TWO_WORDS = [field for field in _FLAGS if "_" in field]
_FIELD = re.compile(rf"(?<![\w.\"-])(?:{_PATH}({'|'.join(_FLAGS)})|({'|'.join(_TWO_WORDS)}))(?![\w-])(?! in every row)")
"""A field where it cannot be a word of the language: with its path, or of several words. What a row holds is none."""


def in_flags(sentence: str) -> str:
    return _FIELD.sub(lambda found: _FLAGS[found[1] or found[2]], sentence)


def refusal(error: RefusedError) -> str:
    """The error's sentence. The field at fault is known for one where the sentence begins with it, too."""
    field = error.field.rpartition(".")[2] if isinstance(error, InvalidError) else ""
    sentence = error.message
    if field in _FLAGS and sentence.startswith(f"{field} "):
        sentence = _FLAGS[field] + sentence.removeprefix(field)
    return in_flags(sentence)
