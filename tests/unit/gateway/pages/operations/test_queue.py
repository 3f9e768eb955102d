"""The queue page's rows: places, times, turns and evaluators."""

from __future__ import annotations

import re

from services import rpc
from services.gateway.pages.operations import queue
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, queue_pb2, token_pb2

ADMIN = rpc.Identity("root", token_pb2.ROLE_ADMIN)
ALICE = rpc.Identity("alice", token_pb2.ROLE_USER)


def job(owner: str, priority: job_pb2.Priority = job_pb2.PRIORITY_NORMAL, endpoint: str = "ollama") -> job_pb2.Job:
    spec = job_pb2.JobSpec(endpoint=endpoint, model="m", priority=priority)
    return job_pb2.Job(job_id=f"of-{owner}", owner=owner, spec=spec, state=job_pb2.Job.STATE_PENDING)


def test_only_an_admin_moves_jobs_and_each_way_ends_at_a_priority() -> None:
    pending = [
        job("alice", priority) for priority in (job_pb2.PRIORITY_HIGH, job_pb2.PRIORITY_NORMAL, job_pb2.PRIORITY_LOW)
    ]
    moves = [(row.priority, row.higher, row.lower) for row in queue.waiting_rows(pending, ADMIN)]
    assert moves == [("high", "", "normal"), ("normal", "high", "low"), ("low", "normal", "")]
    assert {(row.higher, row.lower) for row in queue.waiting_rows(pending, ALICE)} == {("", "")}


def test_users_cancel_their_own_jobs_and_see_only_the_place_of_a_hidden_one() -> None:
    rows = queue.waiting_rows([job("alice"), job("bob"), job_pb2.Job(state=job_pb2.Job.STATE_PENDING)], ALICE)
    assert [row.may_change for row in rows] == [True, False, False]
    assert rows[2].priority == ""
    hidden = queue.waiting_rows([job_pb2.Job(state=job_pb2.Job.STATE_PENDING)], ADMIN)[0]
    assert (hidden.higher, hidden.lower, hidden.may_change) == ("", "", False)


def test_a_start_is_said_as_an_estimate() -> None:
    assert queue.starts(job_pb2.Progress()) == ""
    assert queue.starts(job_pb2.Progress(starts_in_s=0)) == "now"
    assert re.fullmatch(r"about [0-2]\d:[0-5]\d", queue.starts(job_pb2.Progress(starts_in_s=700)))


def test_turns_come_in_the_order_of_the_users_first_waiting_jobs() -> None:
    held = [job("carol"), job("alice")]
    found = queue.turns(queue_pb2.Queue(running=held, pending=[job("bob"), job("alice"), job("bob"), job_pb2.Job()]))
    assert found == [queue.Turn("bob", 0, 2, 1), queue.Turn("alice", 1, 1, 2), queue.Turn("carol", 1, 0, 0)]


def test_endpoints_count_their_jobs() -> None:
    asked = queue_pb2.Queue(running=[job("a", endpoint="x")], pending=[job("a", endpoint="x"), job("b", endpoint="y")])
    found = queue.places([endpoint_pb2.Endpoint(endpoint=name) for name in "xyz"], asked)
    assert [(one.running, one.waiting) for one in found] == [(1, 1), (0, 1), (0, 0)]


def test_silent_evaluators_come_last_and_draining_ones_say_so() -> None:
    def evaluator(name: str, *models: str, live: bool = True, draining: bool = False) -> evaluator_pb2.Evaluator:
        endpoints = [endpoint_pb2.Endpoint(endpoint=f"e{i}", resident_model=one) for i, one in enumerate(models)]
        return evaluator_pb2.Evaluator(evaluator=name, live=live, draining=draining, endpoints=endpoints)

    found = queue.workers(
        [evaluator("a", live=False), evaluator("b", "m", "", "m", "n"), evaluator("c", draining=True)]
    )
    assert [(one.evaluator.evaluator, one.state, one.models) for one in found] == [
        ("b", "live", ("m", "n")),
        ("c", "draining", ()),
        ("a", "silent", ()),
    ]
