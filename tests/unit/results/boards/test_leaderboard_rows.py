"""What a leaderboard says beside ranks: the run before, item sets, projects, what a score rests on."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.results.boards.leaderboard import leaderboard
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import event, job, plan, run
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb


def board(connection: Connection, visible: Visibility = EVERYTHING, **filters: object) -> pb.GetLeaderboardResponse:
    request = pb.GetLeaderboardRequest(suite="glue", **filters)  # type: ignore[arg-type]
    return leaderboard(connection, request, None, visible)


def rows(response: pb.GetLeaderboardResponse) -> list[tuple[str, str, float | None, int]]:
    return [
        (e.job_id, e.previous_job_id, e.previous_mean if e.HasField("previous_mean") else None, e.run_count)
        for e in response.entries
    ]


def test_the_run_before_is_the_configurations_own_on_the_same_items(connection: Connection) -> None:
    run(connection, job("a1", plan("t", 4), model="a"), right=1, wrong=3, minute=1)
    run(connection, job("b1", plan("t", 4), model="b"), right=2, wrong=2, minute=2)
    run(connection, job("cut", plan("t", 2), model="a", item_set="cut", subset=True), right=2, minute=3)
    run(connection, job("a2", plan("t", 4), model="a"), right=4, minute=4)
    run(connection, job("a3", plan("t", 4), model="a"), right=3, wrong=1, minute=5)
    assert rows(board(connection)) == [("a3", "a2", 1.0, 4), ("b1", "", None, 1)]
    assert rows(board(connection, item_set="cut")) == [("cut", "", None, 4)]


def test_a_retry_under_way_gives_the_place_to_the_run_before_until_it_is_sealed(connection: Connection) -> None:
    run(connection, job("a1", plan("t", 4)), right=1, wrong=3, minute=1)
    run(connection, job("a2", plan("t", 4)), right=4, minute=2)
    again = job("a2", plan("t", 4), attempt=2)
    writes.store_events(connection, [event("999999-a2", again, "retried")])
    assert rows(board(connection)) == [("a1", "", None, 1)]
    run(connection, again, right=4, minute=3)
    assert rows(board(connection)) == [("a2", "a1", 0.25, 2)]


def test_a_run_that_moves_to_other_items_leaves_its_old_place(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4)), right=4, minute=1)
    run(connection, job("a", plan("t", 4), item_set="new", attempt=2), right=4, minute=2)
    assert [s.item_set for s in board(connection).item_sets] == ["new"]
    assert rows(board(connection)) == [("a", "", None, 1)]


def test_item_sets_are_listed_with_the_one_shown_first_then_the_newest(connection: Connection) -> None:
    whole = plan("t", 4)
    run(connection, job("whole", whole), right=4, minute=1)
    for minute, item_set in enumerate(("x", "y"), 2):
        cut = plan("t", 2)
        cut.published_items = 4
        made = job(item_set, cut, model=item_set, item_set=item_set, subset=True)
        run(connection, made, right=2, minute=minute)
    run(connection, job("second", plan("t", 2), model="z", item_set="x", subset=True), right=1, wrong=1, minute=1)
    listed = [
        (s.item_set, s.items, s.published_items, s.subset, s.configurations, list(s.tasks))
        for s in board(connection).item_sets
    ]
    assert listed == [
        ("set-1", 4, 4, False, 1, ["t"]),
        ("y", 2, 4, True, 1, ["t"]),
        ("x", 2, 2, True, 2, ["t"]),
    ]
    assert [s.item_set for s in board(connection, item_set="x").item_sets] == ["x", "set-1", "y"]


def test_an_incomplete_run_is_on_the_board_with_its_reason_and_bounds_until_a_newer_one_is_complete(
    connection: Connection,
) -> None:
    run(connection, job("lost", plan("t", 5), owner="ann", project_id=1), right=4, minute=1)
    of_ann = Visibility("ann")
    for shown in (board(connection), board(connection, of_ann), board(connection, project_id=1)):
        (entry,) = shown.entries
        assert (entry.job_id, entry.rank, entry.run_count, entry.mark) == ("lost", 0, 0, "")
        assert entry.not_ranked_reason == "1 item has no answer"
        assert (entry.score.bound_low, entry.score.bound_high) == (0.8, 1.0)
        assert (shown.total_models, shown.item_sets[0].configurations) == (0, 0)
    run(connection, job("whole", plan("t", 5), owner="ann", project_id=1), right=3, wrong=2, minute=2)
    for shown in (board(connection), board(connection, of_ann), board(connection, project_id=1)):
        assert [(entry.job_id, entry.rank) for entry in shown.entries] == [("whole", 1)]
    run(connection, job("lost-again", plan("t", 5), owner="ann", project_id=1), right=4, minute=3)
    for shown in (board(connection), board(connection, of_ann), board(connection, project_id=1)):
        assert [(entry.job_id, entry.rank) for entry in shown.entries] == [("whole", 1), ("lost-again", 0)]


def test_items_that_no_run_is_on_are_refused(connection: Connection) -> None:
    run(connection, job("whole", plan("t", 4)), right=4, minute=1)
    run(connection, job("lost", plan("t", 5), item_set="lost", owner="bob"), right=4, minute=2)
    assert [entry.job_id for entry in board(connection, item_set="lost").entries] == ["lost"]
    assert rows(board(connection, item_set="set-1", endpoint="other")) == []
    for visible, item_set in ((EVERYTHING, "nothing"), (Visibility("ann"), "lost")):
        with pytest.raises(
            InvalidRequestError, match=f"No finished run of glue uses the item set '{item_set}'"
        ) as told:
            board(connection, visible, item_set=item_set)
        assert told.value.field == "item_set"


def test_a_project_and_closed_reads_choose_the_newest_among_their_own_runs(connection: Connection) -> None:
    run(connection, job("p1", plan("t", 4), project_id=1, owner="ann"), right=1, wrong=3, minute=1)
    run(connection, job("p1-late", plan("t", 4), project_id=1, owner="ann"), right=2, wrong=2, minute=2)
    run(connection, job("p2", plan("t", 4), project_id=2, owner="bob"), right=4, minute=3)
    assert rows(board(connection)) == [("p2", "p1-late", 0.5, 3)]
    for own in (board(connection, project_id=1), board(connection, Visibility("ann"))):
        assert rows(own) == [("p1-late", "p1", 0.25, 2)]
        assert own.total_models == 1
    assert rows(board(connection, Visibility("ann"), project_id=2)) == []
    assert board(connection, project_id=9).item_sets == []


def test_a_row_tells_what_its_score_rests_on(connection: Connection) -> None:
    made = job("j", plan("t", 4), project_id=7)
    made.spec.suite.shots, made.spec.suite.repeats = 5, 0
    made.receipt.model_digest = "sha256:0f"
    run(connection, made, right=4)
    (entry,) = board(connection).entries
    assert (entry.receipt.model_digest, entry.endpoint_kind) == ("sha256:0f", "openai")
    assert (entry.shots, entry.repeats, entry.project_id) == (5, 1, 7)
    assert [task.task for task in entry.tasks] == ["t"]


def test_the_last_update_counts_runs_beyond_the_limit(connection: Connection) -> None:
    run(connection, job("good", plan("t", 4), model="good"), right=4, minute=1)
    run(connection, job("bad", plan("t", 4), model="bad"), right=1, wrong=3, minute=2)
    short, whole = board(connection, limit=1), board(connection)
    assert [e.job_id for e in short.entries] == ["good"]
    assert short.last_updated == whole.entries[1].completed_at


@pytest.mark.parametrize("state", [job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED])
def test_a_run_that_ends_otherwise_after_its_seal_leaves_the_board_for_the_one_before(
    connection: Connection, state: int
) -> None:
    run(connection, job("a1", plan("t", 4)), right=1, wrong=3, minute=1)
    run(connection, job("a2", plan("t", 4)), right=4, minute=2)
    writes.store_events(connection, [event("999999-a2", job("a2", plan("t", 4), state=state), "failed")])
    assert rows(board(connection)) == [("a1", "", None, 1)]
