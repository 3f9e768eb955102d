"""The services' sentences in the words of the command line: fields of requests become arguments."""

from __future__ import annotations

import re

from services.words.job_options import ALL
from services.words.sampling import PARAMETERS
from services.words.scorers import OPTIONS
from touchstone_client.errors import InvalidError, RefusedError

_SAME = (
    "alias", "config", "custom_id", "custom_id_field", "days", "endpoint", "label", "last_assistant", "metric",
    "model", "name", "note", "reason", "request_id", "revision", "split", "suite", "superseded_by", "task", "template",
    "time_zone",
)  # fmt: skip
_FLAGS = {
    **{field: f"--{field.replace('_', '-')}" for field in _SAME},
    "against_job_id": "--against",
    "baseline_job_id": "--baseline",
    "corrected_answer": "--answer",
    "cron": "the cron expression",
    "dataset_id": "--dataset",
    "extra_json": "--custom-config",
    "job_id": "--job",
    "metadata_field": "--metadata",
    "metadata_value": "--metadata",
    "only_job_id": "--only",
    **{name: field.flags[0] for name, field in (ALL | OPTIONS).items()},
    **{name: one.flags[0] for one in PARAMETERS.values() for name in (one.name, one.rest)},
    "judging.rubric": "--rubric",
    # The model's seed has the same name.
    **{f"{place}.seed": ALL["seed"].flags[0] for place in ("suite", "dataset")},
    # Parts of a job that several arguments give.
    "sampling": "the sampling",
    "scoring": "the scoring",
}
_PATH = r"(?:(?:spec|config|params|reuse|judging|items|sampling|suite|dataset|scoring|options|conditions|source)\.)+"
_NAMES = [name for name in _FLAGS if "." not in name]
_TWO_WORDS = [name for name in _NAMES if "_" in name]
_MEMBER = r"(?:\.(\w[\w-]*(?:\.\w[\w-]*)*))?"
_FIELD = re.compile(
    rf"(?<![\w.\"-])({_PATH}(?:{'|'.join(_NAMES)})|{'|'.join(_TWO_WORDS)}){_MEMBER}(?![\w-])(?! in every row)"
)
"""A field that cannot be an ordinary word: with its path, or of several words. What follows is a member of its value.
Members of a row are not fields."""


def in_flags(sentence: str) -> str:
    return _FIELD.sub(lambda found: f"{found[2]} in {_flag(found[1])}" if found[2] else _flag(found[1]), sentence)


def _flag(path: str) -> str:
    *_, place, name = ("", *path.split("."))
    return _FLAGS.get(f"{place}.{name}", _FLAGS[name])


def refusal(error: RefusedError) -> str:
    """The error's sentence. The wrong field also counts as a field if the sentence begins with it."""
    field = error.field.rpartition(".")[2] if isinstance(error, InvalidError) else ""
    sentence = error.message
    if field in _FLAGS and sentence.startswith(f"{field} "):
        sentence = _FLAGS[field] + sentence.removeprefix(field)
    return in_flags(sentence)
