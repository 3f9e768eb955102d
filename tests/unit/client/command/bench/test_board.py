"""The leaderboard of an experiment on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from services.experiments import documents
from tests.unit.client.command.bench.boards import JOBS, NAME, board
from tests.unit.client.fakes import Fakes
from touchstone.v1 import results_service_pb2 as pb
from touchstone_client.command import main
from touchstone_client.command.bench import board as shown
from touchstone_client.command.printing import output

Captured = pytest.CaptureFixture[str]
COMPARE = ["bench", "compare", "--experiment", NAME]


def test_a_leaderboard_shows_scores_intervals_and_places(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["GetExperiment"] = board()
    assert main([*COMPARE, "--source", "judge", "--judge", "left/judge"]) == 0
    (request,) = fakes.requests("GetExperiment")
    assert (request.name, request.source, request.judge) == (NAME, pb.GetExperimentRequest.SOURCE_JUDGE, "left/judge")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["rank", "model", "prompt", "score"]
    assert lines[1].split()[:10] == ["1", "one", "v1", "0.800", "0.700", "to", "0.900", "1–3", "11", "12"]
    assert lines[1].split()[10:13] == ["4.00", "4.00", "4.00"]
    assert lines[4].split()[:4] == ["two", "v1", "–", "0"]
    assert "Models over all prompts" in lines
    assert lines[-4:] == [
        "Scores are those of the judge left/judge.",
        "one has the highest mean, and is first with 1 of 2 prompts.",
        "1 combination without scores may have any place, also the first.",
        "3 answers could not be judged. They move no score.",
    ]


@pytest.mark.parametrize("given", [["--csv"], ["--format", "csv"]])
def test_figures_are_whole_in_csv(fakes: Fakes, capsys: Captured, given: list[str]) -> None:
    fakes.answers["GetExperiment"] = board()
    assert main([*COMPARE, *given]) == 0
    first, second, _, last = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["composite"], first["composite_high"], first["criteria.tone"], first["cost_usd"]) == (
        *("0.8", "0.9", "0.75", "0.25"),
    )
    assert (second["composite"], second["to_first"], second["p_value"]) == ("0.7125", "-0.0875", "0.03")
    assert (last["rank"], last["composite"], last["errors"], last["tokens_per_s"]) == ("", "", "12", "")


def test_json_is_the_document_of_rest(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["GetExperiment"] = board()
    assert main([*COMPARE, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["source"], made["prompts_with_same_first"], made["experiment"]["name"]) == ("judge", 1, NAME)
    held = made["leaderboard"][0]["composite"]
    assert held == {"value": 0.8, "ci95": [pytest.approx(0.7), pytest.approx(0.9)], "n": 12}
    assert made == documents.leaderboard(board())


def test_an_experiment_without_scores_says_how_to_get_them(fakes: Fakes, capsys: Captured) -> None:
    made = board()
    made.source, made.judge = pb.GetExperimentRequest.SOURCE_UNSPECIFIED, ""
    for row in made.rows:
        row.ClearField("composite")
    del made.models[:]
    fakes.answers["GetExperiment"] = made
    assert main(COMPARE) == 0
    assert f"touchstone bench export --experiment {NAME} --export FILE" in capsys.readouterr().out


def test_equal_means_have_no_winner(fakes: Fakes, capsys: Captured) -> None:
    made = board()
    made.models[1].mean.CopyFrom(made.models[0].mean)
    fakes.answers["GetExperiment"] = made
    assert main(COMPARE) == 0
    shown = capsys.readouterr().out
    assert "2 models share the highest mean." in shown
    assert "has the highest mean" not in shown


def test_why_there_are_no_scores_is_said(fakes: Fakes, capsys: Captured) -> None:
    made = board()
    made.source, made.judge = pb.GetExperimentRequest.SOURCE_UNSPECIFIED, ""
    del made.models[:]
    fakes.answers["GetExperiment"] = made

    def last() -> list[str]:
        assert main(COMPARE) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.endswith(".")]

    made.live_judges.append("left/judge")
    assert last() == ["left/judge still judges. The same command shows the scores later."]
    made.uncounted_job_ids.append(JOBS["one"])
    assert last()[0] == "1 of 2 jobs marked invalid or superseded: no scores of theirs count."
    made.uncounted_job_ids.append(JOBS["two"])
    assert last() == ["No scores: every job is marked invalid or superseded."]


def test_at_80_columns_score_and_interval_stay() -> None:
    for model in ("qwen2.5:0.5b", "a-model-with-a-name-that-is-too-long-for-a-line"):
        changed = board()
        for row in changed.rows:
            row.model, row.prompt = model, "v3-few-shot"
        table = shown._rows(changed)
        columns, cells = table.seen()
        titles = [columns[place].title for place in output._fitting(columns, cells, 80)]
        assert titles[:5] == ["rank", "model", "prompt", "score", "95 % interval"]
