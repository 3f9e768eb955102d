"""What `touchstone suite check` says to the author of a suite or a plug-in."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from deploy.command import main
from services.errors import InvalidRequestError
from services.evaluator.plugins.check import check
from tests.plugin_packages import scorer, suite
from tests.unit.test_structure import ROOT

EXAMPLE = ROOT / "docs/examples/plugin"
HEAD = """
from random import random
from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY, EXACT_MATCH
from services.evaluator.tasks.kinds.free_answer import FreeAnswer
from services.evaluator.tasks.kinds.text import Classification
from touchstone.v1.suite_pb2 import MetricSpec

SUITE, TITLE, DESCRIPTION = "own", "Own", "Own."


def rows(split):
    return [{"question": f"q{n}", "answer": str(n), "label": n % 3, "empty": ""} for n in range(5)]


def task(**more):
    usual = dict(
        suite=SUITE, task="t", title="T", source=Source("own", "x", rows=rows), split="test", texts={"question": "Q"},
        instruction="Do.", kind="number", metrics=(EXACT_MATCH,), published_items=5,
    )
    return FreeAnswer(**usual | more)


def labelled(**more):
    return Classification(
        suite=SUITE, task="t", title="T", source=Source("own", "x", rows=rows), split="test", texts={"question": "Q"},
        instruction="Do.", metrics=(ACCURACY,), published_items=5, **more,
    )
"""


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is imported here is forgotten."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("services.", "pyarrow.")):
            del sys.modules[name]


def said(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / f"suite_{abs(hash(text))}.py"
    file.write_text(dedent(text))
    lines: list[str] = []
    fine = check(str(file), None, lines.append)
    wrong = [line for line in lines if "looked at in" not in line]
    assert fine == (not wrong)
    return [line.removeprefix(f"{file.stem}: ") for line in wrong]


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ("(task(),)", ""),
        ("(task(), task())", "Two tasks are named 't'."),
        ("(task(suite='other'),)", "Task t names the suite 'other', but SUITE is 'own'."),
        ("()", "TASKS is missing: a tuple of the suite's tasks, such as MultipleChoice(...)."),
        ("(3,)", "Entry 1 of TASKS is int, not a task such as MultipleChoice(...)."),
        (
            "(task(), task(task='u'))",
            "own: WEIGHTING is missing: the rule by which a suite of several tasks is scored.",
        ),
        ("(task(texts={'quest': 'Q'}),)", "own/t: own (x, test) cannot be used: line 1 has no 'quest'. "),
        (
            "(task(texts={'empty': 'Q'}),)",
            "own/t: Column empty is empty in all rows of own (x, test). Is that its name?",
        ),
        (
            "(labelled(labels=('a', 'b')),)",
            "own/t: own (x, test) cannot be used: labels run from 0 to 2, not within 0–1",
        ),
        ("(task(prepare=lambda row: 1 / 0),)", "own/t: It does not plan in generate mode: ZeroDivisionError: "),
        (
            "(task(context='{nothing}', candidates='question'),)",
            "own/t: It does not plan in loglikelihood mode: a template or a function names 'nothing', which the rows",
        ),
        (
            "(task(judge=lambda answer, right: {'correct': 0.0}),)",
            "own/t: item 0: a response with the right answer, '0', scores 0 in correct, not 1.",
        ),
        (
            "(task(judge=lambda answer, right: {'correct': 1.0}),)",
            "own/t: item 0: a response with the wrong answer '1.0' counts as right.",
        ),
        (
            "(task(judge=lambda answer, right: {'correct': '1'}),)",
            "own/t: item 0: a response with the right answer, '0', cannot be scored: its statistic correct is '1', "
            "not a number from 0 to 1.",
        ),
        (
            "(task(source=Source('own', 'x', rows=lambda split: [{'question': str(random()), 'answer': '1'}])),)",
            "own/t: The rows of own (x, test) differ from call to call.",
        ),
        (
            "(task(metrics=(MetricSpec(metric='m', rule=MetricSpec.RULE_MEAN, statistic='other'),)),)",
            "own/t: item 0: a response with the right answer, '0', has no statistic other, which the metric m needs.",
        ),
    ],
)
def test_each_fault_of_a_suite_is_said(tmp_path: Path, tasks: str, problem: str) -> None:
    lines = said(tmp_path, f"{HEAD}\n\nTASKS = {tasks}\n")
    assert [line[: len(problem)] for line in lines[:1]] == ([problem] if problem else []), lines


def test_all_missing_members_are_named_at_once(tmp_path: Path) -> None:
    (line,) = said(tmp_path, "SUITE = 3")
    assert [name for name in ("SUITE", "TITLE", "DESCRIPTION", "TASKS") if f"{name} is missing" in line] == [
        "SUITE",
        "TITLE",
        "DESCRIPTION",
        "TASKS",
    ]
    assert said(tmp_path, "import no_such_module")[0].startswith("It cannot be imported: ModuleNotFoundError")


def test_a_packages_folder_is_checked_as_a_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "check", str(EXAMPLE)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Nothing is wrong."
    (tmp_path / "pyproject.toml").write_text(
        '[project.entry-points."touchstone.suites"]\nother = "own_sums"\n'
        '[project.entry-points."touchstone.scorers"]\nodd = "own_odd:SCORER"\n'
        '[project.entry-points."touchstone.providers"]\nkind = "own_odd:judge"\n'
    )
    (tmp_path / "own_sums.py").write_text(suite("sums"))
    (tmp_path / "own_odd.py").write_text(scorer("uneven"))
    assert main(["suite", "check", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "suite other: SUITE is 'sums', but the entry point is named 'other'. Use one name.",
        "scorer odd: The scorer's name is 'uneven', but its entry point is named 'odd'. Use one name.",
        "provider kind: The entry point names function, not a ProviderKind.",
        "Correct what is listed above.",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import os; os._exit(0)", "{name}: The code ended the process with exit code 0."),
        ("import os; os.abort()", "{name}: The code ended the process with signal 6."),
        ("class Skipped(BaseException): pass\nraise Skipped('no')", "{name}: It cannot be imported: Skipped: no."),
    ],
)
def test_code_that_ends_the_process_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    file = tmp_path / "own_end.py"
    file.write_text(text)
    assert main(["suite", "check", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [line.format(name="own_end"), "Correct what is listed above."]


def test_names_that_an_evaluator_refuses_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project.entry-points."touchstone.suites"]\n"Bad Name" = "m"\nglue = "m"\n'
    )
    lines: list[str] = []
    assert not check(str(tmp_path), None, lines.append)
    assert "suite glue: glue is the name of a built-in suite. Rename it." in lines
    assert any(line.startswith("suite Bad Name: The name 'Bad Name' must have") for line in lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[project", "pyproject.toml cannot be read: Expected ']'"),
        ("project = 5", "must be tables of names and values."),
        ('[project.entry-points."touchstone.suites"]\nown = 5', "The entry point own of"),
    ],
)
def test_a_project_file_of_another_form_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InvalidRequestError, match=re.escape(why)):
        check(str(tmp_path), None, print)


def test_a_target_that_is_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "check", str(tmp_path / "no.py")]) == 2
    assert main(["suite", "check", "no-such-package"]) == 2
    error = capsys.readouterr().err
    assert f"There is no file {tmp_path / 'no.py'}." in error
    assert "no-such-package is not a suite's file, a folder with entry points" in error
