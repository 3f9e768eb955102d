"""How every process reads its TOUCHSTONE_ variables: one reader for each kind of value.

A variable that is empty counts as not set. Each reader raises InvalidRequestError with one sentence for an invalid
value, which ends a service before it starts (see `services.rpc.run`).
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from services.errors import InvalidRequestError
from services.words.addresses import DNS, split

LONG_S = 10**9
"""Most seconds of a time without another limit: 31 years."""
MOST_BYTES = 10**15
"""Most bytes of anything: a petabyte."""
MOST_PORT = 65_535

_UNITS = {"_S": " of seconds", "_BYTES": " of bytes"}
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\]")


def text(name: str, default: str = "", environ: Mapping[str, str] | None = None) -> str:
    """Any text without spaces around it."""
    return (os.environ if environ is None else environ).get(name, "").strip() or default


def whole(name: str, default: int, least: int, most: int, environ: Mapping[str, str] | None = None) -> int:
    """A whole number from `least` to `most`."""
    given = text(name, str(default), environ)
    try:
        value = int(given) if re.fullmatch(r"[+-]?[0-9]{1,30}", given, re.ASCII) else None
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise InvalidRequestError(
            f"{name} must be a whole number{_unit(name)} between {least:,} and {most:,}; it is {_shown(given)}."
        )
    return value


def number(name: str, default: float, least: float, most: float, environ: Mapping[str, str] | None = None) -> float:
    """A finite number from `least` to `most`."""
    given = text(name, str(default), environ)
    # Stricter than Python, which also takes the digits of other scripts and underscores between them.
    value = float(given) if _DECIMAL.fullmatch(given) else math.nan
    if not least <= value <= most:
        raise InvalidRequestError(
            f"{name} must be a number{_unit(name)} between {_plain(least)} and {_plain(most)}; it is {_shown(given)}."
        )
    return value


def choice(name: str, default: str, known: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """One of a few words."""
    given = text(name, default, environ)
    if given not in known:
        raise InvalidRequestError(f"{name} must be {' or '.join(known)}; it is {_shown(given)}.")
    return given


def switch(name: str, environ: Mapping[str, str] | None = None) -> bool:
    """1 for on, 0 for off, which is the default."""
    return choice(name, "0", ("0", "1"), environ) == "1"


def listen(name: str, default: str, environ: Mapping[str, str] | None = None) -> str:
    """The host:port that a server binds; port 0 means any free one. Without a default it may be unset."""
    given = text(name, default, environ)
    if given != default and not _is_address(given, least_port=0):
        raise InvalidRequestError(
            f"{name} must be host:port, such as {default or '127.0.0.1:9464'}; it is {_shown(given)}."
        )
    return given


def is_loopback(address: str) -> bool:
    """Whether `host:port` names this machine's loopback."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_host(name: str, default: str, environ: Mapping[str, str] | None = None) -> str:
    """A name or address of this machine that a server can bind."""
    given = text(name, default, environ)
    with socket.socket(socket.AF_INET6 if ":" in given else socket.AF_INET) as probe:
        try:
            probe.bind((given, 0))
        except (OSError, UnicodeError) as error:
            raise InvalidRequestError(
                f"{name} must be an address of this machine, such as {default}; it is {_shown(given)}."
            ) from error
    return given


def addresses(name: str, default: str, environ: Mapping[str, str] | None = None) -> str:
    """Where a server is, as host:port; a name of several, as dns:///host:port; or several of both,
    separated by commas. Without a default it may be unset."""
    given = text(name, default, environ)
    if not given:
        return ""
    listed = split(given)
    if not all(_is_address(one.removeprefix(DNS), least_port=1) for one in listed):
        example = default or "127.0.0.1:8054"
        raise InvalidRequestError(
            f"{name} must be host:port, such as {example}, or {DNS}host:port, or several of them separated by commas; "
            f"it is {_shown(given)}."
        )
    return ",".join(listed)


def url(name: str, default: str, schemes: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """A URL with a host, or several separated by commas; the part before its @ is never shown."""
    given = text(name, default, environ)
    if given and not all(_is_url(one, schemes) for one in given.split(",")):
        example = f"{schemes[0]}://127.0.0.1:{4222 if schemes[0] == 'nats' else 8222}"
        raise InvalidRequestError(
            f"{name} must be a URL with a host, such as {example}; it is {_shown(given.rpartition('@')[2])}."
        )
    return given


def folder(name: str, what: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """A folder that exists; None when it is not set. `what` says what the folder is."""
    given = text(name, "", environ)
    if not given:
        return None
    path = _path(name, given)
    if not path.is_dir():
        raise InvalidRequestError(f"{name} must name {what}; {given[:500]} is not a folder.")
    return path


def file(name: str, what: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """A file that can be read; None when it is not set. `what` says what the file is."""
    given = text(name, "", environ)
    if not given:
        return None
    path = _path(name, given)
    if not path.is_file():
        raise InvalidRequestError(f"{name} must name {what}; {given[:500]} is not a file.")
    if not os.access(path, os.R_OK):
        raise InvalidRequestError(f"{name} must name {what}; {given[:500]} cannot be read by this user.")
    return path


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """TOUCHSTONE_STATE_DIR, where everything is kept."""
    return writable("TOUCHSTONE_STATE_DIR", "var", environ)


def writable(name: str, default: str, environ: Mapping[str, str] | None = None) -> Path:
    """A folder that exists and is writable, or can be created; it is not created here."""
    path = _path(name, text(name, default, environ))
    nearest = next((known for known in (path, *path.parents) if os.path.lexists(known)), path)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise InvalidRequestError(f"{name} must name a folder that this user may write to; it is {_shown(str(path))}.")
    return path


def _path(name: str, given: str) -> Path:
    try:
        path = Path(given).expanduser().resolve()
        path.exists()  # Also for a name that is too long, or in a folder that this user may not look into.
        return path
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidRequestError(f"{name} must name a path; it is {_shown(given)}.") from error


def _is_address(given: str, *, least_port: int) -> bool:
    host, _, port = given.rpartition(":")
    known = re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) is not None
    return known and least_port <= int(port) <= MOST_PORT and _HOST.fullmatch(host) is not None


def _is_url(given: str, schemes: Sequence[str]) -> bool:
    try:
        parts = urlsplit(given.strip())
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _unit(name: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _shown(given: str) -> str:
    return repr(given if len(given) <= 80 else f"{given[:77]}...")
