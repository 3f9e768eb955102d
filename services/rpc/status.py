"""Domain errors as gRPC statuses, and back."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from services import errors

_CODES: dict[type[errors.TouchstoneError], grpc.StatusCode] = {
    errors.InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
    errors.PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    errors.NotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.LimitReachedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.UnsupportedError: grpc.StatusCode.UNIMPLEMENTED,
    errors.DeadlineError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
}
_ERRORS = {code: error for error, code in _CODES.items()}


def to_status(error: errors.TouchstoneError) -> Any:
    """A google.rpc.Status with typed details."""
    code = code_of(error)
    assert code is not None
    details: list[Any] = []
    if isinstance(error, errors.InvalidRequestError):
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    elif isinstance(error, errors.LimitReachedError):
        details.append(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=error.retry_after_s)))
    elif isinstance(error, errors.ConflictError):
        failure = error_details_pb2.PreconditionFailure.Violation(type="STATE", description=error.message)
        details.append(error_details_pb2.PreconditionFailure(violations=[failure]))
    packed = []
    for detail in details:
        any_ = any_pb2.Any()
        any_.Pack(detail)
        packed.append(any_)
    status = status_pb2.Status(code=code.value[0], message=error.message, details=packed)
    return rpc_status.to_status(status)


def code_of(error: errors.TouchstoneError) -> grpc.StatusCode | None:
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), None)


def from_rpc_error(error: grpc.aio.AioRpcError) -> errors.TouchstoneError:
    """The domain error that a failed call stands for, with its details."""
    message = error.details() or "No details given."
    kind = _ERRORS.get(error.code())
    if kind is None:
        return errors.TouchstoneError(message)
    status = _status_of(error)
    if kind is errors.LimitReachedError:
        retry = error_details_pb2.RetryInfo()
        seconds = next((retry.retry_delay.seconds for d in status.details if d.Unpack(retry)), 1) if status else 1
        return errors.LimitReachedError(message, int(seconds))
    if kind is errors.InvalidRequestError:
        bad = error_details_pb2.BadRequest()
        field = next((bad.field_violations[0].field for d in status.details if d.Unpack(bad)), "") if status else ""
        return errors.InvalidRequestError(message, field)
    return kind(message)


def _status_of(error: grpc.aio.AioRpcError) -> Any:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return None
