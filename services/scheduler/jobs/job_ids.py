"""Ids of jobs."""

from __future__ import annotations

import secrets
import uuid

_VERSION, _VARIANT = 7, 0b10


def new_job_id(now: float) -> str:
    """A UUID of version 7 (RFC 9562): `now`, in seconds since 1970, then 74 random bits.

    Ids grow with time, so that the rows of a job lie where an ordered table expects them: among millions of results
    they are found without an index, which random ids would not allow.
    """
    milliseconds = int(now * 1000) & ((1 << 48) - 1)
    high, low = secrets.randbits(12), secrets.randbits(62)
    return str(uuid.UUID(int=milliseconds << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low))
