"""What the client raises."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from services import errors
from tests.unit.client.fakes import JOB, Fakes
from touchstone_client import (
    Client,
    InvalidError,
    LimitError,
    NotAllowedError,
    NotFoundError,
    ServiceError,
    StateError,
    UnreachableError,
)


@pytest.mark.parametrize(
    ("told", "kind", "more"),
    [
        (errors.InvalidRequestError("Wrong.", "spec.model"), InvalidError, {"field": "spec.model"}),
        (
            errors.InvalidFieldsError("Two are wrong.", [("name", "No name."), ("models[1]", "No model.")]),
            InvalidError,
            {"field": "", "problems": (("name", "No name."), ("models[1]", "No model."))},
        ),
        (errors.UnauthenticatedError("Send a token."), NotAllowedError, {}),
        (errors.PermissionDeniedError("Not yours."), NotAllowedError, {}),
        (errors.NotFoundError("Gone."), NotFoundError, {}),
        (errors.ConflictError("It is finished."), StateError, {}),
        (errors.LimitReachedError("Too many.", 300), LimitError, {"retry_after_s": 300}),
        (errors.UnavailableError("NATS does not answer."), UnreachableError, {}),
    ],
)
def test_errors_have_types_sentences_and_details(
    fakes: Fakes, told: errors.TouchstoneError, kind: type[Exception], more: dict[str, Any]
) -> None:
    fakes.answers["CancelJob"] = told
    with Client() as client, pytest.raises(kind) as raised:
        client.cancel(JOB)
    assert str(raised.value).startswith(told.message)
    assert {name: getattr(raised.value, name) for name in more} == more


def test_an_unknown_failure_is_the_services(fakes: Fakes) -> None:
    fakes.answers["CancelJob"] = lambda request: grpc.StatusCode.INTERNAL
    with Client() as client, pytest.raises(ServiceError, match="said by the fake"):
        client.cancel(JOB)


def test_a_missing_token_says_where_to_set_it(fakes: Fakes) -> None:
    fakes.answers["GetQueue"] = errors.UnauthenticatedError("Send a token.")
    with Client() as client, pytest.raises(NotAllowedError, match="TOUCHSTONE_TOKEN"):
        client.queue()
