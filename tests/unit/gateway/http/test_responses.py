"""One table maps gRPC codes to HTTP; every domain error has its place in it."""

from __future__ import annotations

import json

import grpc
import pytest
from starlette.exceptions import HTTPException

from services import errors
from services.gateway.backend import RpcFailureError
from services.gateway.http.responses import HTTP_STATUS, FieldErrors, JSONResponse, json_error, status_of

EXPECTED = {
    "OK": 200,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "UNAUTHENTICATED": 401,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 409,
    "ABORTED": 409,
    "UNIMPLEMENTED": 501,
    "OUT_OF_RANGE": 400,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
}


def test_all_17_codes_have_a_status() -> None:
    assert {code.name: status for code, status in HTTP_STATUS.items()} == EXPECTED
    assert len(EXPECTED) == len(list(grpc.StatusCode)) == 17


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_a_failed_call_answers_with_its_codes_status_and_a_detail(code: grpc.StatusCode) -> None:
    answer = json_error(RpcFailureError(code, "said"))
    assert answer.status_code == EXPECTED[code.name]
    assert json.loads(bytes(answer.body))["detail"].endswith("said")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidRequestError("x"), 400),
        (errors.UnauthenticatedError("x"), 401),
        (errors.PermissionDeniedError("x"), 403),
        (errors.NotFoundError("x"), 404),
        (errors.ConflictError("x"), 409),
        (errors.LimitReachedError("x", 7), 429),
        (errors.UnsupportedError("x"), 501),
        (errors.DeadlineError("x"), 504),
        (errors.UnavailableError("x"), 503),
        (errors.TouchstoneError("x"), 500),
        (FieldErrors([("a", "x")]), 422),
        (HTTPException(405), 405),
        (ValueError("secret"), 500),
    ],
)
def test_domain_errors_have_their_status(error: Exception, status: int) -> None:
    assert status_of(error) == status


def test_every_domain_error_has_a_status_of_its_own() -> None:
    kinds = errors.TouchstoneError.__subclasses__()
    known = [kind for kind in kinds if kind.__module__ == "services.errors"]
    assert len(known) == 9
    for kind in known:
        made = kind("x", 1) if kind is errors.LimitReachedError else kind("x")
        assert status_of(made) != 500


def test_unexpected_errors_keep_their_text_to_the_log() -> None:
    body = json.loads(bytes(json_error(ValueError("/etc/secret")).body))
    assert body == {"detail": "Benchmark execution failed: internal error; the gateway's log has the details."}


def test_a_limit_says_when_to_come_back() -> None:
    answer = json_error(errors.LimitReachedError("full", 300))
    assert answer.headers["retry-after"] == "300"
    assert json.loads(bytes(answer.body)) == {"detail": "full", "retry_after": 300}


def test_a_number_that_json_does_not_have_is_null_and_costs_nothing_else() -> None:
    rows = [{"cost": float("nan"), "name": "a"}, {"cost": [1.5, float("-inf")], "name": "b"}]
    assert json.loads(bytes(JSONResponse({"rows": rows}).body)) == {
        "rows": [{"cost": None, "name": "a"}, {"cost": [1.5, None], "name": "b"}]
    }
