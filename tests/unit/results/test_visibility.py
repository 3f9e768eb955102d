"""Who may read what."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results import configurations, duckdb_store, job_reads
from services.results.database import Connection
from services.results.leaderboard import leaderboard
from services.results.settings import Settings
from services.results.visibility import EVERYTHING, OPEN, OWN, Visibility, of_caller
from services.rpc.caller import LOCAL, Identity, use_identity
from tests.unit.results.builders import START, event, job, plan, run
from touchstone.v1 import results_service_pb2, token_pb2

USER = Identity("ann", token_pb2.ROLE_USER)
ADMIN = Identity("root", token_pb2.ROLE_ADMIN)
SERVICE = Identity("scheduler", token_pb2.ROLE_SERVICE)


@pytest.mark.parametrize(
    ("reads", "caller", "visible"),
    [
        (OPEN, USER, EVERYTHING),
        (OWN, USER, Visibility("ann")),
        (OWN, ADMIN, EVERYTHING),
        (OWN, SERVICE, EVERYTHING),
        (OWN, LOCAL, EVERYTHING),
    ],
)
def test_closed_reads_bind_users_alone(reads: str, caller: Identity, visible: Visibility) -> None:
    use_identity(caller)
    try:
        assert of_caller(reads) == visible
    finally:
        use_identity(LOCAL)


def test_another_users_job_reads_like_one_that_does_not_exist(connection: Connection) -> None:
    duckdb_store.store_events(connection, [event("1", job("theirs", owner="bob"))])
    with pytest.raises(NotFoundError) as hidden:
        job_reads.get_job_result(connection, "theirs", Visibility("ann"))
    with pytest.raises(NotFoundError) as missing:
        job_reads.get_job_result(connection, "nobody", Visibility("ann"))
    assert hidden.value.message.replace("theirs", "nobody") == missing.value.message
    assert job_reads.get_job(connection, "theirs", Visibility("bob")).owner == "bob"
    asked = results_service_pb2.ListEventsRequest(job_id="theirs")
    with pytest.raises(NotFoundError):
        job_reads.list_events(connection, asked, Visibility("ann"))
    trail = job_reads.list_events(connection, results_service_pb2.ListEventsRequest(), Visibility("ann"))
    assert list(trail.events) == []


def test_reads_may_be_open_or_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_READS", "own")
    assert Settings.from_env().reads == OWN
    monkeypatch.setenv("TOUCHSTONE_READS", "closed")
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_READS"):
        Settings.from_env()


def test_what_others_ran_and_named_is_told_by_no_refusal(connection: Connection) -> None:
    run(connection, job("mine", plan("t", 4), model="one", owner="ann"), right=4)
    run(connection, job("theirs", plan("t", 4), model="two", owner="bob", suite="secret"), right=4)
    run(connection, job("ours", plan("t", 4), model="two", owner="bob"), right=4, minute=1)
    given = results_service_pb2.NameConfigurationRequest(configuration="two@local", name="best", alias="prod")
    now = START.replace(tzinfo=None)
    configurations.name_configuration(connection, given, Identity("bob", token_pb2.ROLE_USER), now)
    for field in ("name", "alias"):
        asked = results_service_pb2.NameConfigurationRequest(configuration="one@local")
        setattr(asked, field, "best" if field == "name" else "prod")
        with pytest.raises((ConflictError, PermissionDeniedError)) as refused:
            configurations.name_configuration(connection, asked, USER, now, Visibility("ann"))
        assert "two@local" not in refused.value.message
    for suite in ("secret", "unheard-of"):
        board = results_service_pb2.GetLeaderboardRequest(suite=suite)
        with pytest.raises(InvalidRequestError) as unknown:
            leaderboard(connection, board, [], Visibility("ann"))
        assert unknown.value.message == "Invalid benchmark suite. Supported: glue"
