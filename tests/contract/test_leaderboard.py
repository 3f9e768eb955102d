"""Rows of a leaderboard: who ranks, in which order, and which filters choose them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.backends import Backend
from tests.contract.test_answers import shape
from tests.contract.things import FLOOR, MODEL, Twin, new_project, run


class Board:
    """Four runs on demo in a project of their own: `again` repeats `first`, `random` and `model` are others."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.project = backend, new_project()
        self.first = self._run(FLOOR)
        self.random = self._run(FLOOR | {"model": "random"})
        self.again = self._run(FLOOR)
        self.floors = self.ask()
        self.model = self._run(MODEL)

    def _run(self, config: dict[str, Any]) -> str:
        job_id = run(self.backend, self.project, config)
        self.backend.finish(job_id)
        return job_id

    def ask(self, query: str = "") -> Any:
        return self.backend.call("GET", f"/leaderboard?suite=demo&project_id={self.project}{query}")


@pytest.fixture(scope="module")
def board(backend: Backend) -> Board:
    return Board(backend)


@pytest.fixture(scope="module")
def other_board(twin: Twin) -> Board | None:
    return Board(twin[0]) if twin else None


def ids(answer: Any) -> list[str]:
    return [row["job_id"] for row in answer["leaderboard"]]


def test_baselines_rank_while_they_are_alone(board: Board) -> None:
    rows = board.floors["leaderboard"]
    assert {row["job_id"] for row in rows} == {board.random, board.again}, "the newest run is its configuration's"
    assert [row["rank"] for row in rows] == [1, 2]
    assert [row["rank_range"][0] <= row["rank"] <= row["rank_range"][1] <= 2 for row in rows] == [True, True]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert board.floors["total_models"] == 2


def test_models_rank_before_baselines(board: Board) -> None:
    answer = board.ask()
    first, *floors = answer["leaderboard"]
    assert (first["job_id"], first["rank"], first["rank_range"], first["baseline"]) == (board.model, 1, None, False)
    assert ids({"leaderboard": floors}) == ids(board.floors)
    assert [(row["rank"], row["rank_range"], row["baseline"]) for row in floors] == [(None, None, True)] * 2
    assert (answer["total_models"], answer["not_ranked"], answer["places_pending"]) == (1, [], False)
    assert answer["last_updated"] == first["completed_at"]


def test_a_row_counts_the_runs_of_its_configuration(board: Board) -> None:
    rows = {row["job_id"]: row for row in board.ask()["leaderboard"]}
    assert {job_id: row["benchmark_count"] for job_id, row in rows.items()} == {
        board.model: 1,
        board.random: 1,
        board.again: 2,
    }
    trend = rows[board.again]["trend"]
    assert (trend["previous_job_id"], trend["change"], trend["direction"]) == (board.first, 0, "same")
    assert rows[board.random]["trend"] is rows[board.model]["trend"] is None
    for job_id, row in rows.items():
        job = board.backend.call("GET", f"/results/{job_id}")
        assert (row["model"], row["provider"], row["completed_at"], row["receipt"]) == (
            job["model_name"],
            job["provider"],
            job["completed_at"],
            job["receipt"],
        )
        assert row["ci95"][0] <= row["score"] <= row["ci95"][1]
    scores = {row["job_id"]: row["score"] for row in board.ask("&metric=score")["leaderboard"]}
    assert scores[board.model] == board.backend.call("GET", f"/results/{board.model}")["score"]["mean"]


def test_a_board_has_the_same_members(board: Board, other_board: Board | None) -> None:
    if other_board:
        told, faked = (shape(one.ask()) for one in (board, other_board))
        for found in (told, faked):
            # What unanswered and unread items leave open is not in every row.
            found["$.leaderboard[]"] -= {".bounds", ".answered_score"}
        assert {place: faked[place] for place in faked.keys() & told.keys()} == {
            place: told[place] for place in faked.keys() & told.keys()
        }


def test_a_board_is_filtered(board: Board) -> None:
    whole = board.ask()
    assert ids(board.ask("&endpoint=baselines")) == ids(board.floors)
    assert board.ask("&endpoint=baselines")["total_models"] == 2
    assert ids(board.ask(f"&endpoint={MODEL['provider']}")) == [board.model]
    assert ids(board.ask("&endpoint=vllm-a")) == ids(board.ask("&mode=loglikelihood")) == []
    assert ids(board.ask(f"&item_set={whole['item_set']}")) == ids(whole)
    nobodys = board.backend.call("GET", f"/leaderboard?suite=demo&project_id={new_project()}")
    assert (nobodys["leaderboard"], nobodys["total_models"], nobodys["last_updated"]) == ([], 0, None)
    one = board.ask("&endpoint=baselines&limit=1")
    assert (ids(one), one["total_models"]) == (ids(board.floors)[:1], 2)
    assert (one["leaderboard"][0]["rank"], one["leaderboard"][0]["rank_range"]) == (1, [1, 2])


def test_a_board_ranks_by_every_metric_and_weighting_that_it_names(board: Board) -> None:
    whole = board.ask()
    assert (whole["metric"], whole["metrics"][0], whole["mode"]) == ("accuracy", "score", "generate")
    assert whole["item_sets"][0]["item_set"] == whole["item_set"]
    assert whole["item_sets"][0]["configurations"] == 1, "of models, where there are any"
    assert whole["weighting"] == whole["suite_weighting"] == "tasks"
    for query in ("metric=score", "metric=score&weighting=items", "weighting=items", "weighting=tasks"):
        answer = board.ask(f"&{query}")
        assert {*ids(answer)} == {*ids(whole)}
        assert [row["score"] for row in answer["leaderboard"][1:]] == sorted(
            (row["score"] for row in answer["leaderboard"][1:]), reverse=True
        )
        assert answer["weighting"] == ("items" if "items" in query else "tasks")
        assert answer["suite_weighting"] == "tasks"


def test_a_marked_run_gives_its_place_to_the_one_before(board: Board) -> None:
    def mark(job_id: str, **body: Any) -> None:
        board.backend.call("POST", f"/results/{job_id}/mark", json=body)

    mark(board.again, mark="invalidated", reason="wrong prompts")
    mark(board.random, mark="superseded", reason="newer", superseded_by=board.first)
    marked = board.ask("&endpoint=baselines")
    assert (ids(marked), marked["total_models"]) == ([board.first], 1)
    assert (marked["leaderboard"][0]["benchmark_count"], marked["leaderboard"][0]["trend"]) == (1, None)
    apart = {row["job_id"]: (row["mark"], row["reason"]) for row in marked["not_ranked"]}
    assert apart == {board.again: ("invalidated", "the run was invalidated: wrong prompts")}
    for job_id in (board.again, board.random):
        mark(job_id, mark="valid")
    assert ids(board.ask("&endpoint=baselines")) == ids(board.floors)
