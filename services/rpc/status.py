"""Domain errors as gRPC statuses, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from services import errors
from services.words.addresses import NOT_LEADING
from touchstone.v1 import dataset_pb2

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
_NO_ROOM = "no_room"
_NO_RETRY = ("grpc-retry-pushback-ms", "-1")
_BAD_LINES = "bad_lines"
_WRONG_FIELDS = "wrong_fields"
_MOST_VIOLATIONS = 100
_MOST_VIOLATIONS_BYTES = 4500
"""Of the lines or fields and their reasons. Details are a header, in base64, of which many clients accept 8 KB in
all."""
_MOST_REASONS_BYTES = 2500
_LINE = re.compile(r"line ([0-9]{1,18})")
_UNAVAILABLE: dict[str, type[errors.UnavailableError]] = {
    _NO_ROOM: errors.NoRoomError,
    NOT_LEADING: errors.StandbyError,
}
_ERRORS = {code: error for error, code in _CODES.items()}


def to_status(error: errors.TouchstoneError) -> Any:
    """A google.rpc.Status with typed details."""
    code = code_of(error)
    assert code is not None
    details: list[Any] = []
    if isinstance(error, errors.BadLinesError):
        reasons = [_reasons(error)] if error.reasons else []
        lines = [(f"line {number}", reason) for number, reason in error.lines]
        details.append(_violations(lines, _MOST_VIOLATIONS_BYTES - sum(one.ByteSize() for one in reasons)))
        details += reasons
        details.append(error_details_pb2.ErrorInfo(reason=_BAD_LINES, metadata={_BAD_LINES: str(error.total)}))
    elif isinstance(error, errors.InvalidRequestError):
        fields = error.problems if isinstance(error, errors.InvalidFieldsError) else [(error.field, error.message)]
        details.append(_violations(fields, _MOST_VIOLATIONS_BYTES))
        if len(details[-1].field_violations) < len(fields):
            total = {_WRONG_FIELDS: str(len(fields))}
            details.append(error_details_pb2.ErrorInfo(reason=_WRONG_FIELDS, metadata=total))
    elif isinstance(error, errors.LimitReachedError | errors.UnavailableError):
        details.append(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=error.retry_after_s)))
        if isinstance(error, errors.NoRoomError):
            details.append(error_details_pb2.ErrorInfo(reason=_NO_ROOM))
        elif isinstance(error, errors.StandbyError):
            details.append(error_details_pb2.ErrorInfo(reason=NOT_LEADING))
    elif isinstance(error, errors.ConflictError):
        failure = error_details_pb2.PreconditionFailure.Violation(type="STATE", description=error.message)
        details.append(error_details_pb2.PreconditionFailure(violations=[failure]))
    packed = []
    for detail in details:
        any_ = any_pb2.Any()
        any_.Pack(detail)
        packed.append(any_)
    status = rpc_status.to_status(status_pb2.Status(code=code.value[0], message=error.message, details=packed))
    if isinstance(error, errors.NoRoomError):
        # A channel would try again within a second, which cannot help.
        return status._replace(trailing_metadata=(*status.trailing_metadata, _NO_RETRY))
    return status


def _reasons(error: errors.BadLinesError) -> dataset_pb2.BadLineReasons:
    """As many of the reasons as a header may hold, at least the first one."""
    told = dataset_pb2.BadLineReasons(other_lines=error.total)
    for one in error.reasons:
        told.reasons.add(reason=one.reason, count=one.count, lines=one.lines)
        if told.ByteSize() > _MOST_REASONS_BYTES and len(told.reasons) > 1:
            del told.reasons[-1]
            break
        told.other_lines -= one.count
    return told


def _violations(wrong: Sequence[tuple[str, str]], most_bytes: int) -> Any:
    """As many of the (place, reason) as a header may hold, at least the first one."""
    bad = error_details_pb2.BadRequest()
    for place, reason in wrong[:_MOST_VIOLATIONS]:
        bad.field_violations.add(field=place, description=reason)
        if bad.ByteSize() > most_bytes and len(bad.field_violations) > 1:
            del bad.field_violations[-1]
            break
    return bad


def code_of(error: errors.TouchstoneError) -> grpc.StatusCode | None:
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), None)


def from_rpc_error(error: grpc.aio.AioRpcError) -> errors.TouchstoneError:
    """The domain error of a failed call, with its details."""
    message = error.details() or "No details were given."
    kind = _ERRORS.get(error.code())
    if kind is None:
        return errors.TouchstoneError(message)
    status = _status_of(error)
    if kind is errors.LimitReachedError:
        return errors.LimitReachedError(message, _retry_after_s(status) or 1)
    if kind is errors.UnavailableError:
        unavailable = _UNAVAILABLE.get(_info(status), errors.UnavailableError)
        seconds = _retry_after_s(status)
        return unavailable(message, seconds) if seconds else unavailable(message)
    if kind is errors.InvalidRequestError:
        return _invalid(message, status)
    return kind(message)


def _retry_after_s(status: Any) -> int:
    """The delay in the status; 0 without one."""
    retry = error_details_pb2.RetryInfo()
    return next((int(retry.retry_delay.seconds) for d in status.details if d.Unpack(retry)), 0) if status else 0


def _info(status: Any) -> str:
    """The reason in the status; empty without one."""
    info = error_details_pb2.ErrorInfo()
    return next((info.reason for d in status.details if d.Unpack(info)), "") if status else ""


def _invalid(message: str, status: Any) -> errors.InvalidRequestError:
    bad, info, told = error_details_pb2.BadRequest(), error_details_pb2.ErrorInfo(), dataset_pb2.BadLineReasons()
    for detail in status.details if status else ():
        _ = detail.Unpack(bad) or detail.Unpack(info) or detail.Unpack(told)
    lines = [
        (int(found[1]), violation.description)
        for violation in bad.field_violations
        if (found := _LINE.fullmatch(violation.field))
    ]
    if lines:
        total = max(len(lines), int(info.metadata.get(_BAD_LINES, "0")))
        reasons = [errors.LineReason(one.reason, one.count, list(one.lines)) for one in told.reasons]
        return errors.BadLinesError(message, lines, total, reasons)
    fields = [(violation.field, violation.description) for violation in bad.field_violations]
    if len(fields) > 1:
        return errors.InvalidFieldsError(message, fields)
    return errors.InvalidRequestError(message, fields[0][0] if fields else "")


def _status_of(error: grpc.aio.AioRpcError) -> Any:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return None
