"""Logs are found and told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.importing.imports import GOOD, ROW, SCORED, answers, made
from tests.unit.client.logs import DATE, choices, generated, lm_eval, sample
from touchstone.v1 import suite_pb2
from touchstone_client.errors import InvalidError
from touchstone_client.importing import reading


def test_a_folders_logs_are_one_import(tmp_path: Path) -> None:
    for task in ("rte", "sst2"):
        lm_eval(tmp_path / "model", task, [choices(0, ROW, "A?", SCORED)])
    results = tmp_path / "model" / f"results_{DATE}.json"
    taken = made(reading.read([tmp_path, results]))
    assert {answer.task for request in taken.requests() for answer in request.answers} == {"rte", "sst2"}
    spec = taken.spec("i", 1)
    assert (spec.endpoint, spec.model, spec.suite.suite, list(spec.suite.tasks)) == (
        "lm_eval",
        "m",
        "glue",
        ["rte", "sst2"],
    )
    assert (spec.mode, spec.reuse.import_id) == (suite_pb2.MODE_LOGLIKELIHOOD, "i")
    assert set(taken.run.prompt_hashes) == {"rte", "sst2"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "it has no samples."),
        ([{"a": 1}], "line 1: it has no resps"),
        ([sample(0, ROW, {"gen_args_0": {"arg_0": "text"}}, [["-12.5"]])], "scores a whole text"),
    ],
)
def test_what_is_no_log_is_refused_at_once(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        reading.read([lm_eval(tmp_path, "rte", lines)])


def test_a_line_beyond_any_measure_is_not_read_into_memory(tmp_path: Path) -> None:
    file = lm_eval(tmp_path, "rte", [GOOD])
    with file.open("r+b") as opened:
        opened.seek(80 * 1024 * 1024)
        opened.write(b"\n")
    with pytest.raises(InvalidError, match="line 2: it has more than 64 MB"):
        answers(reading.read([file]))


def both(tmp_path: Path, first: Callable[[Path], Path], second: Callable[[Path], Path]) -> list[Path]:
    return [first(tmp_path / "a"), second(tmp_path / "b")]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda f: lm_eval(f, "sst2", [generated(0, ROW, "p", "y")]), "several modes: generate, loglikelihood"),
        (lambda f: lm_eval(f, "sst2", [GOOD], shots=5), "several numbers of few-shot examples: 0, 5"),
        (lambda f: lm_eval(f, "sst2", [GOOD], lm_eval_version="0.4.9"), "several versions of the tool"),
        (lambda f: lm_eval(f, "rte", [GOOD]), "are both of rte"),
    ],
)
def test_logs_that_are_no_one_run_are_refused(tmp_path: Path, second: Callable[[Path], Path], said: str) -> None:
    files = both(tmp_path, lambda f: lm_eval(f, "rte", [GOOD]), second)
    with pytest.raises(InvalidError, match=said):
        reading.read(files)


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InvalidError, match=r"notes\.txt is neither a log"):
        reading.read([tmp_path / "notes.txt"])
    with pytest.raises(InvalidError, match=r"has no samples_\*\.jsonl"):
        reading.read([tmp_path])
