"""An endpoint that allows 600 calls a minute, three users, six evaluator processes, a whole minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rows import write_mirror
from tests.servers.limited_server import LimitedServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.chaos

USERS = ("ada", "bob", "eve")
PER_MINUTE = 600
ITEMS = 290
"""Of each user: more than it can have answered before the minute of all three is over."""


def test_six_evaluators_share_a_limit_between_three_users_for_a_minute_and_lose_nothing(tmp_path: Path) -> None:
    with stub_thread() as stubs:
        behaviour = Behaviour(models=USERS, latency_s=0.05)
        server = stubs.start(LimitedServer(behaviour, calls=PER_MINUTE, window_s=60))
        endpoint: Endpoint = {
            "name": "stub",
            "kind": "openai",
            "base_url": server.url,
            "concurrency": 8,
            "requests_per_minute": PER_MINUTE,
        }
        data = write_mirror(tmp_path / "data", {"sst2": ITEMS})
        stack = Stack(tmp_path / "stack", [endpoint], data, evaluators=6, auth="token")
        try:
            stack.start()
            admin = stack.create_token("root", "admin")
            tokens = {user: stack.create_token(user) for user in USERS}
            # Each user's model has the user's name, by which the server tells the calls apart.
            jobs = [stack.run("stub", user, "glue", token=tokens[user], tasks=["sst2"]) for user in USERS]
            ended = [stack.wait(job_id, 240, token=admin) for job_id in jobs]
        finally:
            stack.stop()
    assert [job.state for job in ended] == [job_pb2.Job.STATE_COMPLETED] * 3, [job.reason for job in ended]
    assert [(job.progress.items_done, job.progress.items_failed) for job in ended] == [(ITEMS, 0)] * 3
    assert len(server.answered) == 3 * ITEMS
    shares = server.shares(USERS, 60)
    equal = sum(shares.values()) / len(USERS)
    print(f"answered in a minute: {shares}; refused in all: {server.refused} of {len(server.answered)}")
    assert sum(shares.values()) >= 0.97 * PER_MINUTE
    assert all(abs(share - equal) <= 0.05 * equal for share in shares.values()), shares
    assert server.refused <= 0.01 * len(server.answered)
