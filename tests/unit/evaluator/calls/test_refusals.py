"""What a sender reads of a call without an answer."""

from __future__ import annotations

from typing import Any

import pytest

from services.evaluator.calls import refusals
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.transport import Reply

ENDPOINT = Endpoint("local", "openai", "http://10.0.0.7:8000/v1", api_key_env="K", api_key="sk-secret")


def of_reply(status: int, error: dict[str, Any], **headers: str) -> refusals.RefusedCallError:
    reply = Reply(status, headers, {"error": error}, "", 1.0)
    return refusals.of_reply(ENDPOINT, reply, "m", "/chat/completions", {"model": "m", "seed": 1, "foo": 2})


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (400, {"message": "Bad foo", "type": "t", "param": "foo", "code": "c"}, (400, "t", "foo", "c")),
        (400, {"message": "seed is too large"}, (400, "invalid_request_error", "seed", None)),
        (422, {"message": "no"}, (422, "invalid_request_error", "", None)),
        (401, {"message": "Incorrect API key sk-secret"}, (502, "server_error", "", None)),
        (403, {"message": "no"}, (502, "server_error", "", None)),
        (404, {"message": "The model does not exist", "code": "model_not_found"},
         (404, "invalid_request_error", "", "model_not_found")),
        (404, {"message": "Not Found"}, (502, "server_error", "", None)),
        (429, {"message": "Slow down"}, (429, "rate_limit_error", "", "rate_limit_exceeded")),
        (429, {"message": "no", "code": "insufficient_quota"}, (429, "rate_limit_error", "", "insufficient_quota")),
        (500, {"message": "oops"}, (502, "server_error", "", None)),
        (503, {"message": "busy"}, (503, "server_error", "", None)),
    ],
)  # fmt: skip
def test_what_a_provider_says_has_a_fitting_status(
    status: int, error: dict[str, Any], expected: tuple[int, str, str, str | None]
) -> None:
    found = of_reply(status, error)
    assert (found.status, found.kind, found.param, found.code) == expected
    assert "sk-secret" not in found.message


def test_when_to_come_back_is_passed_on() -> None:
    assert of_reply(429, {"message": "x"}, **{"retry-after": "6.2"}).headers["retry-after"] == "7"
    used_up = of_reply(429, {"code": "insufficient_quota"})
    assert used_up.headers["x-should-retry"] == "false"
    assert "retry-after" not in used_up.headers


def test_no_address_of_an_endpoint_is_shown() -> None:
    message = "local does not answer at 10.0.0.7:8000. See http://10.0.0.7:8000/v1 and 10.0.0.7:8000."
    found = refusals.of_provider(ENDPOINT, ProviderError(message, unreachable=True), {})
    assert found.message == "local does not answer. See local and local."
    assert found.status == 503
