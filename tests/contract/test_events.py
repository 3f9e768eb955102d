"""Event streams of jobs: the order, the members and the end of their events."""

from __future__ import annotations

from itertools import pairwise

from tests.contract.backends import Backend
from tests.contract.test_answers import shape
from tests.contract.things import MODEL, SILENT, Things, Twin, new_project, run

STATUSES = ("pending", "running", "completed")


def test_a_finished_job_has_one_event(backend: Backend, things: Things, twin: Twin) -> None:
    with backend.events(things.done) as stream:
        ((name, identity, state),) = stream
    assert (name, identity, state["job_id"]) == ("done", state["version"], things.done)
    known = backend.call("GET", f"/results/{things.done}")
    assert state == {member: known[member] for member in state}
    if twin:
        fake, others = twin
        with fake.events(others.done) as stream:
            ((_, _, faked),) = stream
        assert shape(faked)["$"] == shape(state)["$"]
        assert shape(faked)["$.progress"] == shape(state)["$.progress"]


def test_events_follow_a_job_to_its_end(backend: Backend) -> None:
    job_id = run(backend, new_project(), MODEL)
    with backend.events(job_id) as stream:
        first = next(stream)
        backend.finish(job_id)
        events = [first, *stream]
    assert [name for name, _, _ in events] == ["job"] * (len(events) - 1) + ["done"]
    states = [state for _, _, state in events]
    assert [identity for _, identity, _ in events] == [state["version"] for state in states]
    assert states[-1]["status"] == "completed"
    for before, after in pairwise(states):
        # Rates may change while nothing happens, so the version may stay.
        assert before != after, "an event is a change"
        assert STATUSES.index(before["status"]) <= STATUSES.index(after["status"])
        assert before["progress"]["items_done"] <= after["progress"]["items_done"]


def test_events_of_an_attempt_end_with_it(backend: Backend) -> None:
    job_id = run(backend, new_project(), SILENT)
    for attempt in (1, 2):
        backend.begin(job_id)
        with backend.events(job_id) as stream:
            name, _, state = next(stream)
            assert (name, state["status"], state["attempt"], "error" in state) == ("job", "running", attempt, False)
            backend.call("POST", f"/cancel/{job_id}")
            *_, (name, _, state) = stream
            assert (name, state["status"], state["attempt"]) == ("done", "cancelled", attempt)
            assert state["error"]
        if attempt == 1:
            backend.finish(job_id)
            backend.call("POST", f"/retry/{job_id}")
