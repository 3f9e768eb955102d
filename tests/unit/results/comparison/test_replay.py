"""Items of a job that were asked again."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, NotFoundError
from services.results.boards.leaderboard import leaderboard
from services.results.comparison.replay import get_replay
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import event, job
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import job_pb2, noise_pb2
from touchstone.v1 import results_service_pb2 as pb

OLD = "1" * 60 + "0" * 40


def replayed(connection: Connection, pattern: str, job_id: str = "new", of: str = "old", **fields: object) -> None:
    spec = job_pb2.JobSpec(endpoint="local", model="m1", replays_job_id=of)
    spec.suite.suite, spec.suite.limit = "glue", len(pattern)
    finished(connection, job_id, task("one", right_or_wrong(pattern)), spec=spec, minute=50, **fields)  # type: ignore[arg-type]


def read(connection: Connection, job_id: str = "new", visible: Visibility = EVERYTHING) -> noise_pb2.Replay:
    with connection.cursor() as cursor:
        return get_replay(cursor, pb.GetReplayRequest(job_id=job_id), visible).replay


def flipped(pattern: str, *places: int) -> str:
    return "".join(str(1 - int(mark)) if place in places else mark for place, mark in enumerate(pattern))


def test_flips_are_counted_on_the_items_that_were_asked_again(connection: Connection) -> None:
    finished(connection, "old", task("one", right_or_wrong(OLD)))
    replayed(connection, flipped(OLD[:80], 0, 1, 2, 70))
    found = read(connection)

    assert (found.job_id, found.replayed_job_id, found.items) == ("new", "old", 80)
    assert found.flips.share == pytest.approx(4 / 80)
    assert found.flips.low < 4 / 80 < found.flips.high
    assert (found.higher, found.lower) == (1, 3)
    assert (found.score_then, found.score_now) == pytest.approx((60 / 80, 58 / 80))
    assert not found.HasField("measured")
    assert found.verdict == noise_pb2.REPLAY_VERDICT_UNSPECIFIED
    assert found.words[0].startswith("Asked again, 5.0 %")
    assert "3 of them to a lower score and 1 to a higher one" in found.words[0]
    assert "was not measured" in found.words[1]


@pytest.mark.parametrize(("flips", "more"), [(range(3), False), (range(0, 100, 2), True)])
def test_they_are_compared_with_those_of_runs_before(connection: Connection, flips: range, more: bool) -> None:
    finished(connection, "old", task("one", right_or_wrong(OLD)))
    finished(connection, "older", task("one", right_or_wrong(flipped(OLD, 5, 6))), minute=1)
    finished(connection, "other-model", task("one", right_or_wrong("0" * 100)), model="m2", minute=2)
    replayed(connection, flipped(OLD, *flips))
    found = read(connection)

    assert found.measured_runs == 2
    assert found.measured.share == pytest.approx(0.02)
    assert found.beyond == pytest.approx(len(flips) / 100 - 0.02)
    assert found.beyond_low < found.beyond < found.beyond_high
    assert (found.verdict == noise_pb2.REPLAY_VERDICT_MORE_THAN_NOISE) is more
    assert ("That is more than noise" in found.words[1]) is more
    assert ("More than noise is not shown" in found.words[1]) is not more


def test_what_changed_before_the_replay_is_no_noise_of_later_runs(connection: Connection) -> None:
    """Later runs of the same configuration are compared with each other alone: they have the change, too."""
    changed = flipped(OLD, *range(0, 100, 4))
    finished(connection, "old", task("one", right_or_wrong(OLD)))
    replayed(connection, changed)
    finished(connection, "later", task("one", right_or_wrong(changed)), minute=60)
    assert not read(connection).HasField("measured")
    finished(connection, "later still", task("one", right_or_wrong(flipped(changed, 5))), minute=61)
    found = read(connection)
    assert found.measured_runs == 2
    assert found.measured.share == pytest.approx(0.01)
    assert found.beyond == pytest.approx(0.24)
    assert found.verdict == noise_pb2.REPLAY_VERDICT_MORE_THAN_NOISE
    finished(connection, "older", task("one", right_or_wrong(flipped(OLD, 7, 8, 9))), minute=1)
    found = read(connection)
    assert found.measured_runs == 4
    assert found.measured.share == pytest.approx(0.02)


def test_a_replay_never_ranks_and_represents_no_model(connection: Connection) -> None:
    finished(connection, "old", task("one", right_or_wrong(OLD)))
    replayed(connection, flipped(OLD, 0))
    board = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue"))

    assert [entry.job_id for entry in board.entries] == ["old"]
    ((reason,),) = connection.execute("SELECT not_ranked_reason FROM seals WHERE job_id = 'new'").fetchall()
    assert reason == "a replay never ranks"
    finished(connection, "other", task("one", right_or_wrong("1" * 100)), model="m2")
    assert {run.job_id for run in compared(connection, "m1", "m2").runs} == {"old", "other"}
    assert difference(compared(connection, "new", "old")).difference == pytest.approx(0.01)


def test_what_is_no_finished_replay_is_refused(connection: Connection) -> None:
    finished(connection, "old", task("one", right_or_wrong(OLD)))
    running = job("running")
    running.spec.replays_job_id = "old"
    writes.store_events(connection, [event("r", running)])
    replayed(connection, OLD, job_id="orphan", of="gone")
    replayed(connection, OLD, owner="ann")

    with pytest.raises(ConflictError, match="is not a replay"):
        read(connection, "old")
    for job_id in ("running", "orphan", "unknown"):
        with pytest.raises(NotFoundError):
            read(connection, job_id)
    with pytest.raises(NotFoundError):
        read(connection, visible=Visibility("bob"))
