"""Answers of an experiment for people to score, and their scores."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from services import errors
from services.words import rubrics
from tests.unit.client.command.bench.boards import JOBS, NAME, PROMPTS, board, experiment, runs, unrated
from tests.unit.client.fakes import Fakes
from touchstone.v1 import results_service_pb2 as pb
from touchstone_client.command import main
from touchstone_client.command.bench.people import cell_id

Captured = pytest.CaptureFixture[str]
GOOD = {"relevance": 4, "actionability": 5, "tone": 3}


@pytest.fixture
def told(fakes: Fakes) -> Fakes:
    fakes.answers |= {
        "GetExperiment": board(),
        "ListUnrated": lambda request: unrated(request.job_id),
        "ListExperimentRuns": pb.ListExperimentRunsResponse(runs=runs()),
        "RateAnswers": lambda request: pb.RateAnswersResponse(stored=len(request.ratings)),
    }
    return fakes


@pytest.fixture
def file(told: Fakes, tmp_path: Path) -> Path:
    """An exported file."""
    path = tmp_path / "judge.json"
    assert main(["bench", "export", "--experiment", NAME, "--export", str(path)]) == 0
    return path


def changed(file: Path, *scores: Any, **more: Any) -> None:
    """Fills in the scores of the first cells."""
    document = json.loads(file.read_text())
    for cell, given in zip(document["cells"], scores, strict=False):
        cell["scores"] = given
    file.write_text(json.dumps(document | more))


def apply(file: Path) -> int:
    return main(["bench", "apply", "--experiment", NAME, "--apply", str(file)])


def test_a_file_has_every_answer_in_a_mixed_order_and_no_names(told: Fakes, file: Path) -> None:
    text = file.read_text()
    document = json.loads(text)
    assert (document["experiment"], document["rubric"]["version"]) == (NAME, "tip-v1")
    assert len(document["rubric"]["criteria"][0]["examples"]) == 3
    cells = document["cells"]
    assert {cell["id"] for cell in cells} == {cell_id(run.job_id, run.task, run.item, run.repeat) for run in runs()}
    first = cells[0]
    assert first == {
        "id": first["id"],
        "prompt": first["prompt"],
        "answer": first["answer"],
        "scores": dict.fromkeys(GOOD),
        "note": "",
    }
    assert not any(name in text for name in (*JOBS.values(), *PROMPTS[1:], '"one"', '"two"', "left"))
    jobs = {cell_id(run.job_id, run.task, run.item, run.repeat): run.job_id for run in runs()}
    order = [jobs[cell["id"]] for cell in cells]
    assert order not in (sorted(order), sorted(order, reverse=True))
    # The answers of one job keep their order, in which people rate them.
    for job_id in JOBS.values():
        asked = [cell_id(job_id, one.task, one.item, one.repeat) for one in unrated(job_id).answers]
        assert [cell["id"] for cell in cells if jobs[cell["id"]] == job_id] == asked
    rubric = told.requests("ListUnrated")[0].rubric
    assert rubric == experiment().rubric


def test_a_file_is_not_replaced_by_chance(told: Fakes, file: Path, capsys: Captured) -> None:
    again = ["bench", "export", "--experiment", NAME, "--export", str(file)]
    before = file.read_text()
    changed(file, GOOD)
    assert main(again) == 2
    assert "exists and may hold scores" in capsys.readouterr().err
    assert main([*again, "--overwrite"]) == 0
    assert file.read_text() == before
    made = board()
    made.experiment.CopyFrom(experiment("RUNNING"))
    told.answers["GetExperiment"] = made
    capsys.readouterr()
    assert main([*again[:-1], "-"]) == 0
    shown = capsys.readouterr()
    assert shown.out == before
    assert shown.err == "touchstone: 12 answers to rate. Not finished: 2 jobs. Export again later.\n"


def test_scores_are_stored_job_by_job_and_the_rest_is_pending(told: Fakes, file: Path, capsys: Captured) -> None:
    document = json.loads(file.read_text())
    for cell in document["cells"][:5]:
        cell |= {"scores": GOOD, "note": "clear"}
    document["cells"][5]["note"] = "later"
    file.write_text(json.dumps(document))
    assert apply(file) == 0
    shown = capsys.readouterr()
    assert shown.out == "5 scores stored, 0 as before, 7 pending.\n"
    assert "1 note without scores not stored." in shown.err
    asked = told.requests("RateAnswers")
    assert sum(len(request.ratings) for request in asked) == 5
    assert {request.job_id for request in asked} <= {*JOBS.values()}
    assert all(request.rubric == experiment().rubric for request in asked)
    ids = {cell_id(one.job_id, rating.task, rating.item, rating.repeat) for one in asked for rating in one.ratings}
    assert ids == {cell["id"] for cell in document["cells"][:5]}
    assert {(rating.scores, rating.note) for one in asked for rating in one.ratings} == {(json.dumps(GOOD), "clear")}
    told.answers["RateAnswers"] = lambda request: pb.RateAnswersResponse(unchanged=len(request.ratings))
    assert apply(file) == 0
    assert capsys.readouterr().out == "0 scores stored, 5 as before, 7 pending.\n"


def test_every_wrong_score_is_named_and_nothing_is_stored(told: Fakes, file: Path, capsys: Captured) -> None:
    changed(
        file,
        GOOD,
        {"relevance": 4, "actionability": None, "tone": 9},
        {"relevance": 4.5, "actionability": 5, "tone": True},
        GOOD | {"warmth": 1},
        [5],
    )
    ids = [cell["id"] for cell in json.loads(file.read_text())["cells"]]
    assert apply(file) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"touchstone: Cell {ids[1]} has no score for actionability.",
        f"touchstone: Cell {ids[1]} gives tone the score 9; it must be a whole number from 1 to 5.",
        f"touchstone: Cell {ids[2]} gives relevance the score 4.5; it must be a whole number from 1 to 5.",
        f"touchstone: Cell {ids[2]} gives tone the score true; it must be a whole number from 1 to 5.",
        f"touchstone: Cell {ids[3]} scores 'warmth', which is not a criterion of tip-v1.",
        f"touchstone: Cell {ids[4]} has scores that are not an object.",
        "touchstone: nothing was stored.",
    ]
    assert told.requests("RateAnswers") == []


def test_cells_that_are_not_those_of_the_experiment_are_named(told: Fakes, file: Path, capsys: Captured) -> None:
    document = json.loads(file.read_text())
    first, second = document["cells"][:2]
    document["cells"] += [first, {"id": "0" * 16, "scores": GOOD}, {"scores": GOOD}, 5]
    second |= {"scores": GOOD, "note": "x" * 2_001}
    file.write_text(json.dumps(document))
    assert apply(file) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"touchstone: Cell {second['id']} has a note of 2,001 characters; at most 2,000 are allowed.",
        f"touchstone: Cell {first['id']} occurs twice in the file.",
        f'touchstone: Cell "{"0" * 16}" is not an answer of this experiment.',
        "touchstone: Cell number 15 has no id.",
        "touchstone: Cell number 16 has no id.",
        "touchstone: nothing was stored.",
    ]
    assert told.requests("RateAnswers") == []


def test_cells_of_a_deleted_job_are_skipped_and_named_and_the_rest_is_stored(
    told: Fakes, file: Path, capsys: Captured
) -> None:
    order = [cell["id"] for cell in json.loads(file.read_text())["cells"]]
    gone = [cell_id(run.job_id, run.task, run.item, run.repeat) for run in runs() if run.job_id == JOBS["two"]]
    # Broken scores of what no longer exists are nobody's business.
    changed(file, *[{"tone": 9} if each in gone else GOOD for each in order])
    kept = [run for run in runs() if run.job_id == JOBS["one"]]
    told.answers["ListExperimentRuns"] = pb.ListExperimentRunsResponse(runs=kept)
    assert apply(file) == 0
    shown = capsys.readouterr()
    assert shown.out == "6 scores stored, 0 as before, 0 pending.\n"
    named = ", ".join(each for each in order if each in gone)
    assert shown.err == f"touchstone: 6 cells skipped, of deleted jobs: {named}.\n"
    assert {request.job_id for request in told.requests("RateAnswers")} == {JOBS["one"]}
    # With all of its jobs, nothing is left of a file.
    told.answers["ListExperimentRuns"] = pb.ListExperimentRunsResponse()
    assert apply(file) == 2
    assert "No cell of" in capsys.readouterr().err


def test_a_job_that_is_deleted_while_scores_are_stored_is_skipped_too(
    told: Fakes, file: Path, capsys: Captured
) -> None:
    def rate(request: Any) -> Any:
        if request.job_id == JOBS["one"]:
            return errors.NotFoundError("Benchmark job not found")
        return pb.RateAnswersResponse(stored=len(request.ratings))

    told.answers["RateAnswers"] = rate
    changed(file, *[GOOD] * 12)
    assert apply(file) == 0
    shown = capsys.readouterr()
    assert shown.out == "6 scores stored, 0 as before, 0 pending.\n"
    assert "touchstone: 6 cells skipped, of deleted jobs: " in shown.err


def test_cells_whose_ids_were_exchanged_and_broken_texts_are_named(told: Fakes, file: Path, capsys: Captured) -> None:
    document = json.loads(file.read_text())
    first, second, third = document["cells"][:3]
    first["answer"] = "another answer"
    second |= {"id": "\u001b[31m", "scores": GOOD}
    third |= {"scores": GOOD, "note": "\ud800"}
    file.write_text(json.dumps(document))
    assert apply(file) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"touchstone: Cell {first['id']} has another answer than the experiment; export it again.",
        r'touchstone: Cell "\u001b[31m" is not an answer of this experiment.',
        f"touchstone: Cell {third['id']} has a note with half a character; remove it.",
        "touchstone: nothing was stored.",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        ("[]", "is not a file that `touchstone bench export` wrote"),
        ('{"cells": {}}', "is not a file that `touchstone bench export` wrote"),
        ('{"experiment": "x", "cells": []}', f"belongs to experiment 'x', not to {NAME}."),
        (json.dumps({"experiment": NAME, "cells": []}), f"has another rubric than {NAME}."),
        ("\udcff", "is not UTF-8 text."),
    ],
)
def test_another_file_is_refused(told: Fakes, tmp_path: Path, capsys: Captured, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, errors="surrogateescape")
    assert apply(path) == 2
    assert said in capsys.readouterr().err
    assert told.requests("RateAnswers") == []


def test_a_changed_rubric_is_refused(told: Fakes, file: Path, capsys: Captured) -> None:
    rubric = json.loads(rubrics.written(experiment().rubric))
    rubric["criteria"][0]["weight"] = 3
    changed(file, GOOD, rubric=rubric)
    assert apply(file) == 2
    assert "has another rubric" in capsys.readouterr().err


def test_many_scores_are_sent_in_parts(told: Fakes, tmp_path: Path, capsys: Captured) -> None:
    asked = [pb.ExperimentRun(job_id=JOBS["one"], task="rows", item=item) for item in range(2_500)]
    told.answers["ListExperimentRuns"] = pb.ListExperimentRunsResponse(runs=asked)
    rubric = json.loads(rubrics.written(experiment().rubric))
    cells = [{"id": cell_id(run.job_id, run.task, run.item, 0), "scores": GOOD} for run in asked]
    path = tmp_path / "many.json"
    path.write_text(json.dumps({"experiment": NAME, "rubric": rubric, "cells": cells}))
    assert apply(path) == 0
    assert Counter(len(request.ratings) for request in told.requests("RateAnswers")) == {1000: 2, 500: 1}
    assert capsys.readouterr().out == "2,500 scores stored, 0 as before, 0 pending.\n"


def test_progress_is_shown_on_a_terminal_alone(
    told: Fakes, file: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert apply(file) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert apply(file) == 0
    assert "reading answers" in capsys.readouterr().err


def test_a_refusal_of_the_service_is_said(told: Fakes, file: Path, capsys: Captured) -> None:
    changed(file, GOOD)
    told.answers["RateAnswers"] = errors.ConflictError("The texts are no longer stored.")
    assert apply(file) == 2
    assert capsys.readouterr().err == "touchstone: The texts are no longer stored.\n"
