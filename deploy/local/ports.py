"""Loopback ports for services."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20_000
_given: set[int] = set()


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def take(port: int) -> bool:
    """Whether the port is free and not claimed by another process of this user; if so, claims it."""
    return is_free(port) and _claimed(port)


def free_port() -> int:
    """A free loopback port that stays ours while a service restarts: never the same one twice in a process, and none
    that another live process of this user has claimed.

    It is below the kernel's range for outgoing connections. A port from that range could be handed to any client while
    its service is down, and a client that retries it on loopback can even connect to itself.
    """
    chance = random.SystemRandom()
    highest = _ephemeral_start() - 1
    for _ in range(1000):
        port = chance.randint(_LOWEST, highest)
        if port not in _given and take(port):
            _given.add(port)
            return port
    raise OSError("no free port on 127.0.0.1")


def _claimed(port: int) -> bool:
    """Locks the port's byte of a file that all processes of this user share. The lock ends with this process."""
    file = _claims()
    if file is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _claims() -> int | None:
    """The open file, never closed, as that would give up every claim. None if it cannot be opened: then two processes
    might choose the same port."""
    path = Path(tempfile.gettempdir()) / f"touchstone-ports-{os.getuid()}"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _ephemeral_start() -> int:
    try:
        start = int(_EPHEMERAL_RANGE.read_text().split()[0])
    except OSError:
        start = 32_768
    return start if start > _LOWEST + 1000 else 65_536
