"""What judges found, from the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from services.words import rubrics
from tests.unit.client.fakes import JOB, OTHER, Fakes, dataset_job, metric
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import metric_pb2, results_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def judged(fakes: Fakes) -> Fakes:
    """Two judges by different rubrics, the second of which could not begin."""
    result = metric_pb2.TaskResult(task="rows", items=10, items_planned=10)
    result.metrics.extend([metric("composite", 0.6, 0.05), metric("relevance", 0.75, 0.05), metric("tone", 1.0, 0.0)])
    result.outcomes.answered, result.outcomes.unparsed, result.outcomes.infrastructure_error = 7, 2, 1
    runs = [
        results_service_pb2.JudgeRun(job=dataset_job(JOB, "big"), rubric=rubrics.of_value(TIPS), result=result),
        results_service_pb2.JudgeRun(
            job=dataset_job(OTHER, "small", "FAILED", reason="The endpoint is down."), rubric=rubrics.of_value(CORRECT)
        ),
    ]
    fakes.answers["ListJudges"] = results_service_pb2.ListJudgesResponse(judges=runs)
    return fakes


def test_each_criterion_is_on_its_own_scale_and_the_composite_is_a_share(judged: Fakes, capsys: Captured) -> None:
    assert main(["judges", JOB]) == 0
    table, notes = capsys.readouterr().out.split("\n\n")
    heading, *lines = ([*line.split()] for line in table.splitlines())
    assert heading[-3:] == ["judged", "of", "failed"]
    assert [line[:1] + line[3:] for line in lines] == [
        ["big", "tip-v1", "composite", "0.60", "0.50", "to", "0.70", "0", "to", "1", "7", "10", "2"],
        ["big", "tip-v1", "relevance", "4.00", "3.60", "to", "4.40", "1", "to", "5", "7", "10", "2"],
        ["big", "tip-v1", "actionability", "–", "1", "to", "5", "7", "10", "2"],
        ["big", "tip-v1", "tone", "5.00", "5.00", "to", "5.00", "1", "to", "5", "7", "10", "2"],
        ["small", "qa-v1", "correct", "–", "0", "to", "1", "0", "0", "0"],
    ]
    assert notes == "small: The endpoint is down.\n"


def test_programs_get_all_figures(judged: Fakes, capsys: Captured) -> None:
    assert main(["judges", JOB, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    big, small = told["judges"]
    assert told["people"] == []
    assert (big["job_id"], big["judged"], big["asked"], big["failed"]) == (JOB, 7, 10, 2)
    assert big["criteria"][1]["scale"] == [1, 5]
    assert big["result"]["metrics"][1]["mean"] == 0.75
    assert small["rubric"]["version"] == "qa-v1"
    assert main(["judges", JOB, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["mean_on_scale"] for row in rows] == ["0.6", "4.0", "", "5.0", ""]


def test_people_are_shown_with_judges_and_without(judged: Fakes, capsys: Captured) -> None:
    people = results_service_pb2.PeopleAgreement(rubric=rubrics.of_value(TIPS), raters=2, answers=9, shared=7)
    alpha = results_service_pb2.Interval(value=0.5, low=-0.125, high=0.9, n=7)
    people.criteria.extend([results_service_pb2.CriterionAlpha(criterion="tone", alpha=alpha)])
    people.criteria.add(criterion="relevance")
    found = judged.answers["ListJudges"]
    assert isinstance(found, results_service_pb2.ListJudgesResponse)
    for runs in ([*found.judges], list[results_service_pb2.JudgeRun]()):
        judged.answers["ListJudges"] = results_service_pb2.ListJudgesResponse(judges=runs, people=[people])
        assert main(["judges", JOB]) == 0
        *before, table, note = capsys.readouterr().out.split("\n\n")
        assert len(before) == bool(runs)
        title, _, tone, relevance = table.splitlines()
        assert title == "People among themselves: Krippendorff's alpha"
        assert tone.split() == ["tip-v1", "tone", "0.50", "−0.12", "to", "0.90", "7", "9", "2"]
        assert relevance.split() == ["tip-v1", "relevance", "–", "7", "9", "2"]
        assert ("The endpoint is down." in note) == bool(runs)
        assert main(["judges", JOB, "--format", "json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["people"]
        assert (told["rubric"]["version"], told["raters"], told["shared"]) == ("tip-v1", 2, 7)
        assert told["criteria"][0]["alpha"] == {"value": 0.5, "low": -0.125, "high": 0.9, "n": 7}
        assert main(["judges", JOB, "--format", "csv"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == (6 if runs else 1), "CSV is the judges' table"


def test_judges_outside_have_a_table_and_the_document_of_rest(judged: Fakes, capsys: Captured) -> None:
    outside = results_service_pb2.OutsideJudge(judge="acme/judge-2", rater="labeller", judged=9, answers=10)
    outside.rubric.CopyFrom(rubrics.of_value(TIPS))
    score = results_service_pb2.Interval(value=0.75, low=0.5, high=1.0, n=9)
    outside.means.add(criterion="composite", score=score)
    outside.means.add(criterion="tone", score=score)
    outside.means.add(criterion="relevance")
    found = judged.answers["ListJudges"]
    assert isinstance(found, results_service_pb2.ListJudgesResponse)
    for runs in ([*found.judges], list[results_service_pb2.JudgeRun]()):
        judged.answers["ListJudges"] = results_service_pb2.ListJudgesResponse(judges=runs, outside=[outside])
        assert main(["judges", JOB]) == 0
        shown = capsys.readouterr().out
        assert "touchstone judge " not in shown, "there is a judge"
        title, _, *lines = shown.split("\n\n")[bool(runs)].strip().splitlines()
        assert title == "Judges outside Touchstone"
        assert [" ".join(line.split()) for line in lines] == [
            "acme/judge-2 labeller tip-v1 composite 0.75 0.50 to 1.00 0 to 1 9 10",
            "acme/judge-2 labeller tip-v1 tone 4.00 3.00 to 5.00 1 to 5 9 10",
            "acme/judge-2 labeller tip-v1 relevance – 1 to 5 9 10",
        ]
        assert main(["judges", JOB, "--format", "json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["outside"]
        assert (told["judge"], told["rater"], told["judged"], told["answers"]) == ("acme/judge-2", "labeller", 9, 10)
        assert told["rubric"]["version"] == "tip-v1"
        assert (told["agreement"], told["verdicts"]) == ({}, None)
        assert told["means"]["tone"] == {"value": 0.75, "ci95": [0.5, 1.0], "n": 9}
        assert told["means"]["relevance"] is None


def test_without_a_judge_the_command_says_how_to_start_one(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["ListJudges"] = results_service_pb2.ListJudgesResponse()
    assert main(["judges", JOB]) == 0
    assert f"touchstone judge {JOB} --model MODEL --rubric FILE" in capsys.readouterr().out
    assert main(["judges", JOB, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"judges": [], "outside": [], "people": []}


def test_pairs_of_answers_have_a_table_of_their_own(fakes: Fakes, capsys: Captured) -> None:
    run = results_service_pb2.JudgeRun(job=dataset_job(JOB, "big"), rubric=rubrics.comparing(None))
    run.job.spec.judging.against_job_id = OTHER
    run.pairs.pairs = 40
    one = run.pairs.preferences.add(metric="better", better=20, equal=15, worse=5)
    one.preferred.CopyFrom(results_service_pb2.Interval(value=0.6875, low=0.55, high=0.8, n=40))
    one.same_in_both_orders.CopyFrom(results_service_pb2.Interval(value=0.0, low=0.0, high=0.1, n=40))
    fakes.answers["ListJudges"] = results_service_pb2.ListJudgesResponse(judges=[run])
    assert main(["judges", JOB]) == 0
    title, heading, line = capsys.readouterr().out.strip().splitlines()
    assert title.startswith("Pairs of answers")
    assert "worse  same in both orders" in heading
    assert line.split()[2:] == ["better", "0.69", "0.55", "to", "0.80", "20", "15", "5", "0.00", "0", "0", "0"]
