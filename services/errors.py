"""Errors that a caller can act on. Domain code raises these; `services.rpc` maps them to gRPC, the gateway to HTTP.

TouchstoneError
├── InvalidRequestError    a field is wrong: say which and what it may be
│   ├── InvalidFieldsError several fields are wrong: says which
│   └── BadLinesError      lines of an uploaded file are wrong: says which
├── UnauthenticatedError   no valid token
├── PermissionDeniedError  not yours
├── NotFoundError
├── ConflictError          not possible in the present state
├── LimitReachedError      try again later, `retry_after_s` tells when
├── UnsupportedError       known, but not available in this installation
├── DeadlineError          took longer than the caller allowed
└── UnavailableError       a service or server does not answer; what was asked may or may not be done
    ├── AwayError          it is silent
    ├── BusyError          the service has too much to do; nothing was done
    ├── StandbyError       another scheduler leads, or none; nothing was done
    ├── DamagedFilesError  stored files cannot be read: starting again changes nothing
    └── NoRoomError        a disk is full; `retry_after_s` tells when to try again
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def sendable(text: str) -> str:
    """The text with question marks for lone surrogates, which no message may hold."""
    return text.encode("utf-8", "replace").decode()


class TouchstoneError(Exception):
    """Base of all errors with a message meant for users."""

    def __init__(self, message: str) -> None:
        message = sendable(message)
        super().__init__(message)
        self.message = message


class InvalidRequestError(TouchstoneError):
    """The request is wrong. `field` is the path of the field at fault, or empty."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidFieldsError(InvalidRequestError):
    """Fields of the request are wrong. `problems` are (path, sentence), at least one; `field` is the first path."""

    def __init__(self, message: str, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(message, problems[0][0])
        self.problems = problems


@dataclass(frozen=True, slots=True)
class LineReason:
    """A fault of an uploaded file: how many of all its lines have it, and the first ones."""

    reason: str
    count: int
    lines: Sequence[int]


class BadLinesError(InvalidRequestError):
    """An uploaded file has wrong lines. `lines` are (number from 1, reason), the first ones; `total` counts all.
    `reasons` group them, the most frequent first; `other_lines` have a reason that is not among them."""

    def __init__(
        self, message: str, lines: Sequence[tuple[int, str]], total: int, reasons: Sequence[LineReason] = ()
    ) -> None:
        super().__init__(message)
        self.lines = lines
        self.total = total
        self.reasons = reasons

    @property
    def other_lines(self) -> int:
        return self.total - sum(one.count for one in self.reasons)


class UnauthenticatedError(TouchstoneError):
    """The caller did not show a valid token."""


class PermissionDeniedError(TouchstoneError):
    """The caller is known but may not do this."""


class NotFoundError(TouchstoneError):
    """The thing named does not exist."""


class ConflictError(TouchstoneError):
    """The present state does not allow this."""


class LimitReachedError(TouchstoneError):
    """A quota is used up. Seconds until another try makes sense are in `retry_after_s`."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UnsupportedError(TouchstoneError):
    """Known, but this installation cannot do it."""


class DeadlineError(TouchstoneError):
    """The caller's deadline passed first."""


class UnavailableError(TouchstoneError):
    """Something needed does not answer; trying again may help, after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: int = 2) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AwayError(UnavailableError):
    """A service or a store is silent: it may be down, or starting."""


class BusyError(UnavailableError):
    """The service has too much to do. It did nothing; clients must not repeat this at once."""


class StandbyError(UnavailableError):
    """This scheduler does not lead. It did nothing, so the same call may be sent to another one."""


class DamagedFilesError(UnavailableError):
    """Files of the installation are damaged. The message names them and the commands that help."""


class NoRoomError(UnavailableError):
    """A disk has no room for new work. Another try makes sense after `retry_after_s` seconds."""
