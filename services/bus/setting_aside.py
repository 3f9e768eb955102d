"""Stored messages that a service cannot handle: they are kept on DLQ with the reason, and the service continues.

A message is to blame if handling it fails although NATS, the disk and the other services work. While one of those is
away, every message would fail: then nothing is set aside, and the same message is tried again later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256

import nats.errors
import nats.js.errors
from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from services.bus import contract
from services.bus.job_logs import of_job
from services.bus.operations import Bus
from services.errors import DeadlineError, UnavailableError
from services.telemetry import metrics
from touchstone.v1 import set_aside_pb2

log = logging.getLogger(__name__)

_MOST_DATA = 512 * 1024
_MOST_HEADERS, _MOST_HEADER = 50, 500
_EXCERPT = 1000
_JOB_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORLD = (UnavailableError, DeadlineError, nats.errors.Error, OSError, MemoryError)
_OF_THE_MESSAGE = (nats.errors.MaxPayloadError, nats.errors.BadSubjectError)


def is_at_fault(error: BaseException) -> bool:
    """Whether this error means a bad message, and not an outage of a service, a disk or NATS."""
    if isinstance(error, _OF_THE_MESSAGE):
        return True
    return isinstance(error, Exception) and not isinstance(error, _WORLD)


@dataclass(frozen=True, slots=True)
class Found:
    """A stored message and where it is."""

    stream: str
    sequence: int
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, msg: Msg) -> Found:
        at = msg.metadata
        return cls(at.stream, at.sequence.stream, msg.subject, msg.data, msg.headers or {})


class SettingAside:
    """Sets aside what one service cannot handle, each message once, however often it appears."""

    def __init__(self, bus: Bus, service: str) -> None:
        self._bus, self._service = bus, service

    @asynccontextmanager
    async def guard(self, msg: Msg) -> AsyncIterator[None]:
        """Sets the message aside when the block fails on it. Other errors pass, and those of NATS while storing it."""
        try:
            yield
        except Exception as error:
            if not is_at_fault(error):
                raise
            await self.take(Found.of(msg), error)

    async def take(self, found: Found, error: BaseException) -> None:
        """Returns once the message is stored. Raises NATS's errors."""
        reason = contract.one_line(f"{type(error).__name__}: {error}")
        # The content, too: another stream of the same name counts from 1 again.
        digest = sha256(found.subject.encode(errors="replace") + b"\n" + found.data).hexdigest()[:12]
        job = _JOB_ID.search(found.subject)
        message = set_aside_pb2.SetAsideMessage(
            service=self._service,
            stream=found.stream,
            sequence=found.sequence,
            subject=_text(found.subject),
            reason=_text(reason),
            job_id=job.group() if job else "",
            data=found.data[:_MOST_DATA],
            size=len(found.data),
        )
        for name in list(found.headers)[:_MOST_HEADERS]:
            message.headers[_text(name)] = _text(found.headers[name])
        message.set_aside_at.GetCurrentTime()
        subject = contract.set_aside_subject(self._service, found.stream, found.sequence, digest)
        if await self._store(subject, message.SerializeToString()):
            metrics.SET_ASIDE.add()
            what = f"message {found.sequence} of {found.stream} ({message.subject})"
            log.error("set aside %s: %s", what, reason, exc_info=error, extra=of_job(message.job_id))

    async def _store(self, subject: str, data: bytes) -> bool:
        """False if the message is already stored."""
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        try:
            await self._bus.js.publish(subject, data, headers=headers)
        except nats.js.errors.APIError as error:
            if error.err_code in (contract.ERR_WRONG_LAST_SEQUENCE, contract.ERR_WRONG_LAST_SEQUENCE_CONSTANT):
                return False
            raise
        return True


async def list_set_aside(bus: Bus, after: int, most: int) -> list[tuple[int, set_aside_pb2.SetAsideMessage]]:
    """Up to this many messages of all services after a position of DLQ, oldest first, each with its position; only the
    beginning of their data."""
    found = []
    for position, data in await bus.read_after(contract.DLQ, [contract.set_aside_subjects()], after, most):
        try:
            message = set_aside_pb2.SetAsideMessage.FromString(data)
        except DecodeError as error:
            message = set_aside_pb2.SetAsideMessage(stream=contract.DLQ, sequence=position, data=data, size=len(data))
            message.reason = f"The record of what was set aside cannot be read: {error}"
        message.data = message.data[:_EXCERPT]
        found.append((position, message))
    return found


async def count_set_aside(bus: Bus) -> int:
    """How many messages of all services are set aside."""
    info = await bus.js.stream_info(contract.DLQ, subjects_filter=contract.set_aside_subjects())
    return sum((info.state.subjects or {}).values())


def _text(value: object) -> str:
    """What a protobuf string takes of it. nats-py gives some headers as objects of the e-mail package."""
    return str(value)[:_MOST_HEADER].encode(errors="replace").decode()
