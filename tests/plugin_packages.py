"""Installed packages for tests of plug-ins: folders with the metadata that an installer would write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

SUITES, SCORERS, PROVIDERS = "touchstone.suites", "touchstone.scorers", "touchstone.providers"


def install(
    site: Path, package: str, files: Mapping[str, str], entries: Mapping[str, Mapping[str, str]], version: str = "1.0"
) -> None:
    """`files` are the texts of modules by name, `entries` the values of entry points by group and name."""
    for name, text in files.items():
        (site / f"{name}.py").write_text(dedent(text))
    metadata = site / f"{package.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [
        line for group, named in entries.items() for line in (f"[{group}]", *(f"{n} = {v}" for n, v in named.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def use(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    """Puts a folder of installed packages on the path of this process and of those that it starts."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))


def suite(name: str, *, judge: str = "", rows: str = "", head: str = "") -> str:
    """A module with a suite of one task, `sums`, whose answers are numbers. `judge` are the lines of a function of
    `answer` and `answers`, and `rows` those of one of `split`, where they are not the usual ones."""
    usual_rows = 'return [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(20)]'
    usual_judge = 'return {"correct": float(answer in answers)}'
    return f"""
import os, re, sys, time
from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import EXACT_MATCH
from services.evaluator.tasks.kinds.free_answer import FreeAnswer

{head}

SUITE, TITLE, DESCRIPTION = {name!r}, "Sums", "Sums of numbers."


def rows(split):
    {rows or usual_rows}


def judge(answer, answers):
    {judge or usual_judge}


TASKS = (
    FreeAnswer(
        suite=SUITE, task="sums", title="Sums", source=Source("own", SUITE, rows=rows), split="test",
        texts={{"question": "Question"}}, instruction="Add.", kind="number", judge=judge, metrics=(EXACT_MATCH,),
        published_items=20,
    ),
)
"""


def scorer(
    name: str, *, judge: str = 'return {"correct": float(answer in answers)}', right: str = "as_text(value)"
) -> str:
    """A module with a scorer; `right` is an expression of `value`."""
    return f"""
import os, re, time
from services.evaluator.answers.scorers.scorer import Scorer, as_text, mean, whole


def judge(answer, answers):
    {judge}


def right(value):
    return {right}


SCORER = Scorer("{name}", "{name}-1", (mean("{name}", "correct"),), ("correct",), right, whole, judge, title="T")
"""
