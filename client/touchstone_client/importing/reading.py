"""Files that a user names → logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from touchstone_client.errors import InvalidError
from touchstone_client.importing import inspect, lm_eval, responses
from touchstone_client.importing.log import Log


def read(files: Sequence[Path], shots: int | None = None, first_id: int | None = None) -> list[Log]:
    """One log per file; for a folder, lm_eval's. All are of one tool, one mode and one number of examples.

    `shots` and `first_id` replace what a log does not say. Raises InvalidError, and OSError for a file that cannot be
    read.
    """
    logs = [_one(file, shots, first_id) for file in _files(files)]
    for what, values in (
        ("tools", {log.tool for log in logs}),
        ("modes", {log.mode for log in logs}),
        ("numbers of few-shot examples", {str(log.shots or 0) for log in logs}),
        ("versions of the tool", {log.version for log in logs if log.version}),
    ):
        if len(values) > 1:
            raise InvalidError.of(f"The logs have several {what}: {', '.join(sorted(values))}. Import each separately.")
    by_task: dict[str, Path] = {}
    for log in logs:
        if log.task in by_task:
            raise InvalidError.of(
                f"{by_task[log.task].name} and {log.file.name} are both of {log.task}. Name one of them."
            )
        by_task[log.task] = log.file
    return logs


def _files(files: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for file in files:
        found += lm_eval.samples_in(file) if file.is_dir() else [file]
    # A results file is read with its samples.
    samples = [file for file in dict.fromkeys(found) if not lm_eval.is_results(file)]
    if not samples:
        raise InvalidError.of("Result files have no answers. Name the samples_*.jsonl of lm_eval's --log_samples.")
    return samples


def _one(file: Path, shots: int | None, first_id: int | None) -> Log:
    if responses.is_responses(file):
        return responses.read(file, shots)
    if lm_eval.is_samples(file):
        return lm_eval.read(file, shots)
    if inspect.is_log(file):
        return inspect.read(file, shots, first_id)
    raise InvalidError.of(
        f"{file.name} is neither a log nor a file of answers. Import samples_*.jsonl of lm_eval, .eval or .json of "
        "Inspect, or answers as .jsonl or .jsonl.gz."
    )
