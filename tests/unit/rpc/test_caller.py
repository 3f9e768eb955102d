"""Whom a caller is, and what it may read."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.results.visibility import EVERYTHING, OPEN, OWN, Visibility, of_caller
from services.rpc.caller import LOCAL, Identity, check_request_id, use_identity
from touchstone.v1 import token_pb2

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


@pytest.mark.parametrize("request_id", ["", "a", "!~", "x" * 64])
def test_up_to_64_printable_characters_are_an_id(request_id: str) -> None:
    check_request_id(request_id)


@pytest.mark.parametrize("request_id", ["x" * 65, "a b", "ü", "a\n"])
def test_another_id_is_refused_by_its_field(request_id: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_request_id(request_id)
    assert refused.value.field == "request_id"
