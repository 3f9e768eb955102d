"""Errors of calls, with the sentence that the service gave.

ClientError ├── RefusedError          the service refuses │   ├── InvalidError      the request is wrong; `field` names
the place, `lines` those of an upload │   ├── NotAllowedError   no valid token, or not yours │   ├── NotFoundError │
├── StateError        not possible in the present state │   ├── LimitError        a quota is used up; `retry_after_s`
says when to come back │   └── UnsupportedError  this installation does not have it ├── ServiceError          the
service failed; its log says why └── UnreachableError      no answer
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import grpc
from google.rpc import error_details_pb2, status_pb2

from touchstone.v1 import dataset_pb2
from touchstone_client.settings import Settings
from touchstone_client.unreachable import why


class ClientError(Exception):
    """A call failed. `message` is for users, `code` the gRPC status."""

    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class RefusedError(ClientError):
    """The same request would be refused again."""


class InvalidError(RefusedError):
    """The request is wrong. `field` is the path of the wrong field; empty when there is none or several. `problems` are
    the wrong fields, each with a sentence, the first ones of `problems_total`. `lines` are the first invalid lines of
    an uploaded file, of `lines_total`. `reasons` group all of them, the most frequent first; `other_lines` have a
    reason that is not among them."""

    field = ""
    problems: tuple[tuple[str, str], ...] = ()
    problems_total = 0
    lines: tuple[dataset_pb2.BadLine, ...] = ()
    lines_total = 0
    reasons: tuple[dataset_pb2.BadLineReason, ...] = ()
    other_lines = 0

    @classmethod
    def of(cls, message: str) -> InvalidError:
        """An invalid request that the client itself finds."""
        return cls(message, grpc.StatusCode.INVALID_ARGUMENT)


class NotAllowedError(RefusedError):
    """The token is missing or unknown, or its user may not do this."""


class NotFoundError(RefusedError):
    """The named thing does not exist."""


class StateError(RefusedError):
    """The present state does not allow it, e.g. cancelling what is finished."""


class LimitError(RefusedError):
    """A quota is used up. Another try makes sense after `retry_after_s` seconds."""

    retry_after_s = 1


class UnsupportedError(RefusedError):
    """This installation does not have it."""


class ServiceError(ClientError):
    """The service failed."""


class UnreachableError(ClientError):
    """The service does not answer; the request may or may not have been carried out."""


_REFUSED: dict[grpc.StatusCode, type[RefusedError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidError,
    grpc.StatusCode.UNAUTHENTICATED: NotAllowedError,
    grpc.StatusCode.PERMISSION_DENIED: NotAllowedError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.FAILED_PRECONDITION: StateError,
    grpc.StatusCode.ALREADY_EXISTS: StateError,
    grpc.StatusCode.ABORTED: StateError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
}
_LINE = re.compile(r"line (\d+)")
"""The field of a violation that is about a line of an upload."""
_BAD_LINES = "bad_lines"
"""The key of their number in an ErrorInfo; the next one that of wrong fields."""
_WRONG_FIELDS = "wrong_fields"
_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def translated(error: grpc.RpcError, address: str, variable: str, settings: Settings) -> ClientError:
    """The error of a call to the service at `address`, which `variable` names."""
    # A synchronous call's error is also a call, which grpcio's types do not say; an asynchronous one's is not.
    if isinstance(error, grpc.Call | grpc.aio.AioRpcError):
        code, details = error.code(), error.details() or ""
    else:
        code, details = grpc.StatusCode.UNKNOWN, str(error)
    status = _status(error)
    if code in _SILENT:
        # With a separate status the error comes from the service, else from gRPC.
        return UnreachableError(details if status else why(code, details, address, variable, settings), code)
    kind = _REFUSED.get(code)
    if kind is None:
        return ServiceError(details or code.name, code)
    if code == grpc.StatusCode.UNAUTHENTICATED:
        details = f"{details} Here, set TOUCHSTONE_TOKEN."
    refused = kind(details or code.name, code)
    for detail in status.details if status else ():
        if isinstance(refused, InvalidError) and detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            wrong = error_details_pb2.BadRequest.FromString(detail.value).field_violations
            refused.lines = tuple(_bad_lines(wrong))
            refused.field = wrong[0].field if len(wrong) == 1 and not refused.lines else ""
            refused.problems = () if refused.lines else tuple((one.field, one.description) for one in wrong)
            refused.lines_total = max(refused.lines_total, len(refused.lines))
            refused.problems_total = max(refused.problems_total, len(refused.problems))
        if isinstance(refused, InvalidError) and detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            told = error_details_pb2.ErrorInfo.FromString(detail.value).metadata
            refused.lines_total = max(refused.lines_total, _number(told.get(_BAD_LINES, "")))
            refused.problems_total = max(refused.problems_total, _number(told.get(_WRONG_FIELDS, "")))
        if isinstance(refused, InvalidError) and detail.Is(dataset_pb2.BadLineReasons.DESCRIPTOR):
            grouped = dataset_pb2.BadLineReasons.FromString(detail.value)
            refused.reasons, refused.other_lines = tuple(grouped.reasons), grouped.other_lines
        if isinstance(refused, LimitError) and detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
            refused.retry_after_s = delay.seconds + (delay.nanos > 0)
    return refused


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _bad_lines(violations: Iterable[error_details_pb2.BadRequest.FieldViolation]) -> Iterator[dataset_pb2.BadLine]:
    for violation in violations:
        if found := _LINE.fullmatch(violation.field):
            yield dataset_pb2.BadLine(line=int(found[1]), reason=violation.description)


def _status(error: grpc.RpcError) -> status_pb2.Status | None:
    """The google.rpc.Status that services send with their errors."""
    pairs = error.trailing_metadata() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None
    for key, value in pairs or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            return status_pb2.Status.FromString(value)
    return None
