"""Subjects of NATS and the patterns that match them."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=65536)
def matches(pattern: str, subject: str) -> bool:
    """Whether a subject is of a pattern with `*` (one token) and `>` (all that follow)."""
    if pattern == subject or pattern == ">":
        return True
    if "*" not in pattern and ">" not in pattern:
        return False
    wanted, given = pattern.split("."), subject.split(".")
    for i, token in enumerate(wanted):
        if token == ">":
            return len(given) > i
        if i >= len(given) or token not in ("*", given[i]):
            return False
    return len(wanted) == len(given)


def overlap(one: str, other: str) -> bool:
    """Whether some subject is of both patterns."""
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return one.count(".") == other.count(".")


def parse_headers(raw: bytes) -> dict[str, str]:
    """Of a block that begins with `NATS/1.0`."""
    return dict(_headers(raw))


@lru_cache(maxsize=4096)
def _headers(raw: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in raw.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            found[name.decode()] = value.strip().decode("utf-8", "replace")
    return found


def encode_headers(headers: dict[str, str], status: str = "") -> bytes:
    lines = [f"NATS/1.0{' ' + status if status else ''}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
