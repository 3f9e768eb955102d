"""One table maps gRPC codes to HTTP; every domain error has its place in it."""

from __future__ import annotations

import json

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from starlette.exceptions import HTTPException

from services import errors
from services.gateway import jobs
from services.gateway.api.checks import parse, record
from services.gateway.api.items import item_body
from services.gateway.api.job import progress_body
from services.gateway.backend import RpcFailureError
from services.gateway.pages import formatting
from services.gateway.parameters import custom_problems, parameter_problems
from services.gateway.responses import HTTP_STATUS, FieldErrors, JSONResponse, json_error, status_of
from touchstone.v1 import job_pb2, results_service_pb2

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


@pytest.mark.parametrize("stored", [float("nan"), float("inf"), float("-inf"), -100.0, 1e308])
def test_a_job_with_a_cost_that_cannot_be_is_shown_without_it(stored: float) -> None:
    job = job_pb2.Job(job_id="j", progress=job_pb2.Progress(cost_usd=stored, items_done=3))
    assert progress_body(job)["cost_usd"] is None
    assert progress_body(job)["items_done"] == 3
    assert formatting.cost(job.progress) == ""
    assert formatting.dollars(stored)


def test_an_item_whose_parameters_were_cut_and_whose_choice_is_impossible_is_shown() -> None:
    stored = results_service_pb2.StoredItem(task="t")
    stored.result.parameters = '{"extra":"xxx'
    stored.result.continuations.add(text=" no", loglikelihood=float("-inf"))
    shown = item_body(stored)
    assert shown["parameters"] is None
    assert shown["continuations"][0]["loglikelihood"] is None


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert jobs.iso(Timestamp(seconds=10**15)) is None


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_numbers_beyond_a_float_are_refused_with_their_place(number: int) -> None:
    assert parameter_problems({"temperature": number, "seed": number}, "params")
    assert custom_problems({"a": [number]}, "custom") == [("custom", "custom holds a number that is too large.")]
    with pytest.raises(errors.InvalidRequestError, match="more than a number can be"):
        parse(f'{{"seed": {number}}}'.encode(), record({}))
