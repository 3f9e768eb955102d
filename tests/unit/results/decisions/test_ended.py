"""Which job ends a decision, whoever asks and when, and what decisions a schedule has started."""

from __future__ import annotations

import pytest

from services.errors import NotFoundError, UnavailableError
from services.results.decisions import reads
from services.results.intake import writes
from services.results.storage.database import Connection
from tests.unit.results.builders import event, job
from tests.unit.results.decisions.test_races import NAMES, racers
from tests.unit.results.decisions.test_reads import ITEMS, sides, store
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

CANCELLED, RUNNING = job_pb2.Job.STATE_CANCELLED, job_pb2.Job.STATE_RUNNING
ENDS = {job_pb2.Job.STATE_COMPLETED: "completed", CANCELLED: "cancelled"}


def end(connection: Connection, one: job_pb2.Job, event_id: str, state: job_pb2.Job.State = CANCELLED) -> None:
    one.state = state
    writes.store_events(connection, [event(event_id, one, ENDS.get(state, "retried"))])


def ended(connection: Connection, *names: str) -> list[str]:
    return [name for name in names if reads.ended_with(connection, name) is not None]


def test_only_the_job_that_ended_last_ends_the_decision(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    store(connection, "a", (), upto=20)
    store(connection, "b", range(ITEMS), upto=20)
    with pytest.raises(UnavailableError, match="not stored yet"):
        reads.ended_with(connection, "a")
    # Ids of events grow by length, then by text.
    end(connection, candidate, "end-9")
    assert ended(connection, "b") == []
    end(connection, baseline, "end-10")
    assert ended(connection, "a", "b") == ["a"]
    found = reads.ended_with(connection, "a")
    assert found is not None
    assert (found.decision_id, found.verdict, len(found.path)) == ("a", job_pb2.DECISION_VERDICT_BETTER, 0)
    assert found.saved.items == 2 * ITEMS - 40


def test_a_retry_changes_nothing(connection: Connection) -> None:
    baseline, candidate = sides(connection)
    end(connection, candidate, "end-1")
    end(connection, baseline, "end-2")
    candidate.attempt = 2
    end(connection, candidate, "end-3", RUNNING)
    assert ended(connection, "a", "b") == ["a"]
    end(connection, candidate, "end-4", job_pb2.Job.STATE_COMPLETED)
    assert ended(connection, "a", "b") == ["a"]


def test_a_race_ends_with_its_last_job(connection: Connection) -> None:
    jobs = racers(connection)
    for place, one in enumerate(jobs[:-1]):
        end(connection, one, f"end-{place}")
    assert ended(connection, *NAMES[:-1]) == []
    end(connection, jobs[-1], "end-9")
    assert ended(connection, *NAMES) == [NAMES[-1]]


def test_other_jobs_end_none(connection: Connection) -> None:
    writes.store_events(connection, [event("1", job("plain"))])
    assert reads.ended_with(connection, "plain") is None
    with pytest.raises(NotFoundError):
        reads.ended_with(connection, "unknown")


def test_decisions_are_listed_by_their_schedule(connection: Connection) -> None:
    for names, schedule_id in ((("a", "b"), "s1"), (("c", "d"), ""), (("e", "f"), "s2"), (("g", "h"), "s1")):
        made = sides(connection, names=names)
        for one in made:
            one.spec.schedule_id = schedule_id
        writes.store_events(connection, [event(f"later-{one.job_id}", one) for one in made])

    def listed(schedule_id: str, page_size: int = 0, page_token: str = "") -> tuple[list[str], str]:
        request = pb.ListDecisionsRequest(schedule_id=schedule_id, page_size=page_size, page_token=page_token)
        page = reads.list_decisions(connection, request)
        return [one.decision_id for one in page.decisions], page.next_page_token

    assert sorted(listed("")[0]) == ["a", "c", "e", "g"]
    assert listed("s1") == (["g", "a"], "")
    assert listed("s2") == (["e"], "")
    first, token = listed("s1", 1)
    assert (first, listed("s1", 1, token)) == (["g"], (["a"], ""))
