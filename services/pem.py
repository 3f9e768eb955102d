"""PEM files that variables name: checked when they are read, so that a service says in one sentence which is wrong."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

from services.errors import InvalidRequestError

Need = tuple[str, str, str, str]
"""Two values and the names of their variables: the first must not be set without the second."""


def require_together(needs: Iterable[Need]) -> None:
    """Raises InvalidRequestError when a variable is set without another that it needs."""
    for one, other, name, missing in needs:
        if one and not other:
            raise InvalidRequestError(f"{name} is set but {missing} is not. Set both, or neither.")


def pair(cert: str, key: str, cert_name: str, key_name: str) -> tuple[bytes, bytes]:
    """Key and certificate. Python's ssl checks them: gRPC would report of a wrong pair that the port is in use."""
    found = _read(key, key_name), _read(cert, cert_name)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        raise InvalidRequestError(
            f"{cert_name} ({cert}) and {key_name} ({key}) are not a PEM certificate and its unencrypted key."
        ) from error
    return found


def authority(path: str, name: str) -> bytes:
    """Certificates to trust."""
    text = _read(path, name)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise InvalidRequestError(f"{name} ({path}) contains no PEM certificates.") from error
    return text


def _read(path: str, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequestError(
            f"{name} names {path}, which cannot be read: {error.strerror}. Name a PEM file."
        ) from error
