"""Names and aliases of configurations."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results.boards.leaderboard import leaderboard
from services.results.runs import configurations
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.rpc.caller import Identity
from tests.unit.results.builders import START, job, plan, run
from tests.unit.results.runs.marked import name, user
from touchstone.v1 import results_service_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb


def listed(connection: Connection, visible: Visibility = EVERYTHING, **filters: object) -> list[pb.Configuration]:
    """Over all pages of one."""
    found: list[pb.Configuration] = []
    token = ""
    while True:
        request = pb.ListConfigurationsRequest(page_size=1, page_token=token, **filters)  # type: ignore[arg-type]
        page = configurations.list_configurations(connection, request, visible)
        found += page.configurations
        token = page.next_page_token
        if not token:
            return found


def two_configurations(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), model="one", owner="ann"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), model="two", owner="bob"), right=4, minute=2)
    run(connection, job("c", plan("t", 4), model="one", owner="ann", suite="mmlu"), right=4, minute=3)


def test_configurations_are_listed_newest_run_first_with_their_runs(connection: Connection) -> None:
    two_configurations(connection)
    name(connection, "two@local", name="second", alias="prod")
    one, two = listed(connection)
    assert (one.configuration, one.model, one.job_id, one.suite, one.run_count) == ("one@local", "one", "c", "mmlu", 2)
    assert (two.name, two.alias, two.endpoint, two.run_count) == ("second", "prod", "local", 1)
    assert [c.configuration for c in listed(connection, model="two")] == ["two@local"]
    assert [c.configuration for c in listed(connection, named=True)] == ["two@local"]
    assert [c.configuration for c in listed(connection, Visibility("bob"))] == ["two@local"]


def test_configurations_of_a_project_are_those_with_a_run_of_it_by_its_newest(connection: Connection) -> None:
    two_configurations(connection)
    run(connection, job("d", plan("t", 4), model="one", project_id=7), right=4, minute=4)
    run(connection, job("e", plan("t", 4), model="one", project_id=7), right=4, minute=5)
    run(connection, job("f", plan("t", 4), model="one", project_id=1), right=4, minute=6)
    (one,) = listed(connection, project_id=7)
    assert (one.configuration, one.job_id, one.run_count) == ("one@local", "e", 2)
    assert [(c.job_id, c.run_count) for c in listed(connection, project_id=1)] == [("f", 3), ("b", 1)]
    assert [c.job_id for c in listed(connection, Visibility("bob"), project_id=1)] == ["b"]
    assert listed(connection, project_id=9) == []


def test_an_alias_moves_and_a_name_stays(connection: Connection) -> None:
    two_configurations(connection)
    assert not name(connection, "one@local", name="first", alias="prod").alias_taken_from
    assert list(name(connection, "two@local", alias="prod").alias_taken_from) == ["one@local"]
    assert {c.configuration: (c.name, c.alias) for c in listed(connection)} == {
        "one@local": ("first", ""),
        "two@local": ("", "prod"),
    }
    with pytest.raises(ConflictError):
        name(connection, "two@local", name="first")
    with pytest.raises(ConflictError):
        name(connection, "two@local", alias="first")
    with pytest.raises(ConflictError):
        name(connection, "one@local", name="prod")
    assert name(connection, "one@local", name="").name == ""
    assert name(connection, "two@local", name="first").alias == "prod"


def test_names_and_aliases_are_of_one_suite(connection: Connection) -> None:
    for suite in ("glue", "mmlu"):
        run(connection, job(suite, plan("t", 4), suite=suite, configuration=f"c-{suite}"), right=4)
        assert not name(connection, f"c-{suite}", name="first", alias="prod").alias_taken_from
    assert {c.configuration: (c.name, c.alias) for c in listed(connection)} == {
        "c-glue": ("first", "prod"),
        "c-mmlu": ("first", "prod"),
    }


@pytest.mark.parametrize("text", ["two", "01234567-89ab-4cde-8f01-23456789abcd"])
def test_what_stands_for_something_else_is_no_name(connection: Connection, text: str) -> None:
    two_configurations(connection)
    with pytest.raises(InvalidRequestError) as raised:
        name(connection, "one@local", name=text)
    assert raised.value.field == "name"
    with pytest.raises(InvalidRequestError) as raised:
        name(connection, "one@local", alias=text)
    assert raised.value.field == "alias"


def test_a_configuration_is_named_by_the_beginning_of_its_hash(connection: Connection) -> None:
    for ending in ("aa", "bb"):
        run(connection, job(ending, plan("t", 4), configuration=f"01234567{ending}" + "0" * 54), right=4)
    assert name(connection, "01234567a", name="first").configuration.startswith("01234567aa")
    with pytest.raises(
        InvalidRequestError, match=r"Several configurations start with '01234567': 01234567aa.*, 01234567bb"
    ):
        name(connection, "01234567", name="second")


def test_names_show_on_the_leaderboard(connection: Connection) -> None:
    two_configurations(connection)
    name(connection, "two@local", name="second", alias="prod")
    entries = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue")).entries
    assert [(e.configuration, e.name, e.alias) for e in entries] == [
        ("two@local", "second", "prod"),
        ("one@local", "", ""),
    ]


def test_only_who_ran_it_or_an_admin_names_a_configuration_and_moves_its_alias(connection: Connection) -> None:
    two_configurations(connection)
    name(connection, "one@local", user("ann"), alias="prod")
    with pytest.raises(PermissionDeniedError):
        name(connection, "one@local", user("bob"), name="mine")
    with pytest.raises(PermissionDeniedError):
        name(connection, "two@local", user("bob"), alias="prod")
    assert name(connection, "two@local", alias="prod").alias == "prod"
    with pytest.raises(NotFoundError):
        name(connection, "one@local", user("bob"), Visibility("bob"), name="mine")


@pytest.mark.parametrize("text", ["two words", "x" * 65, "ü", "a/b", "'; DROP TABLE jobs; --"])
def test_names_are_short_and_plain(connection: Connection, text: str) -> None:
    two_configurations(connection)
    with pytest.raises(InvalidRequestError):
        name(connection, "one@local", name=text)
    with pytest.raises(InvalidRequestError):
        name(connection, "one@local", alias=text)
    with pytest.raises(InvalidRequestError):
        name(connection, "one@local", name="same", alias="same")
    with pytest.raises(NotFoundError):
        name(connection, "unknown", name="fine")


USER = Identity("ann", token_pb2.ROLE_USER)


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
