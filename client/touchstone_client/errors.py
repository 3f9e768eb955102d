"""Errors of calls, with the sentence that the service gave.

ClientError
├── RefusedError      the service says no: the request is wrong, not allowed, or not possible now
└── UnreachableError  no answer
"""

from __future__ import annotations

import grpc


class ClientError(Exception):
    """A call failed. `message` is for users, `code` the gRPC status."""

    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class RefusedError(ClientError):
    """Asking the same again gives the same answer."""


class UnreachableError(ClientError):
    """The service does not answer; what was asked may or may not be done."""


_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def translated(error: grpc.RpcError, address: str, variable: str) -> ClientError:
    """The error of a call to the service at `address`, which `variable` names."""
    # Every error that a call raises is a call as well; grpcio's types do not say so.
    code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
    details = error.details() if isinstance(error, grpc.Call) else str(error)
    if code in _SILENT:
        return UnreachableError(f"Nothing answers at {address}. Start Touchstone, or set {variable}.", code)
    return RefusedError(details or code.name, code)
