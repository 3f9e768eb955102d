"""The process that reads one upload: bytes in, shards and finally the dataset out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from services.errors import (
    BadLinesError,
    DeadlineError,
    InvalidRequestError,
    LineReason,
    TouchstoneError,
    UnavailableError,
)
from services.results.datasets import frames
from services.results.datasets.frames import HEADER, Kind, Shard
from touchstone.v1 import dataset_pb2
from touchstone.v1.dataset_service_pb2 import PreviewDatasetResponse

log = logging.getLogger(__name__)

_READ_AHEAD = 2 * 1024 * 1024
"""Bytes of shards that may wait here before the child has to wait; at most twice as much."""
_MODULE = "services.results.datasets.reading"
_OF_THE_FILE = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGXCPU)
"""Signals that end the process for what it reads: packages that are not in Python cannot always say so otherwise."""
_DAMAGED = (
    "The file is damaged, or reading it takes more memory or time than is allowed. Write it again, or upload it as "
    "JSON Lines."
)
_FAILED = "The upload could not be read completely. Try again; the log of the results service has the details."


async def read(
    asked: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes], limits: frames.Limits, idle_s: float
) -> AsyncGenerator[Shard | dataset_pb2.Dataset]:
    """Shards in order, and finally the dataset as far as its rows determine it. Close it to end the process early.

    Raises BadLinesError, InvalidRequestError for an invalid file or options, DeadlineError when no piece comes for
    `idle_s`, UnavailableError when the process fails, and what `pieces` raises.
    """
    async with aclosing(_frames(frames.options(limits, asked), pieces, idle_s)) as found:
        async for kind, payload in found:
            if kind == Kind.SHARD:
                yield Shard.parse(payload)
                continue
            if kind == Kind.DATASET:
                yield dataset_pb2.Dataset.FromString(payload)
                return
            raise refusal(kind, payload, asked.name)


async def preview(
    asked: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes], limits: frames.Limits, idle_s: float
) -> PreviewDatasetResponse:
    """What `read` would make of the file. Raises as `read` does, but not for wrong lines."""
    async with aclosing(_frames(frames.options(limits, asked, preview=True), pieces, idle_s)) as found:
        kind, payload = await anext(found)
        if kind == Kind.PREVIEW:
            return PreviewDatasetResponse.FromString(payload)
        raise refusal(kind, payload, asked.name)


async def _frames(first: bytes, pieces: AsyncIterator[bytes], idle_s: float) -> AsyncGenerator[tuple[int, bytes]]:
    """The frames of a process that reads the pieces after a first frame, until the last one is taken."""
    # Only the modules' path: a process that reads strangers' files gets no token and no key.
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", _MODULE, stdin=PIPE, stdout=PIPE, limit=_READ_AHEAD, env=environment
    )
    feeding = asyncio.create_task(_feed(process, first, pieces, idle_s))
    try:
        while True:
            yield await _frame(process, feeding)
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        # Reads what is left of its output, too, or the pipes would stay open until Python looks for garbage.
        await asyncio.gather(feeding, process.communicate(), process.stdin.wait_closed(), return_exceptions=True)


async def _feed(process: Process, first: bytes, pieces: AsyncIterator[bytes], idle_s: float) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(first)
        # A child that has decided reads no further, and says why on its output.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                try:
                    async with asyncio.timeout(idle_s):
                        piece = await anext(pieces, None)
                except TimeoutError as error:
                    raise DeadlineError(f"No data arrived for {idle_s:.0f} s. Send the file again.") from error
                if piece is None:
                    break
                process.stdin.write(piece)
                await process.stdin.drain()
            process.stdin.close()
    except BaseException:
        # Otherwise the child would treat what came as the whole file.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise


async def _frame(process: Process, feeding: asyncio.Task[None]) -> tuple[int, bytes]:
    assert process.stdout is not None
    try:
        kind, length = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
        return kind, await process.stdout.readexactly(length)
    except asyncio.IncompleteReadError as ended:
        if feeding.done() and not feeding.cancelled() and (error := feeding.exception()) is not None:
            raise error from ended
        code = await process.wait()
        log.error("the reader of an upload ended with %d", code)
        if -code in _OF_THE_FILE:
            raise InvalidRequestError(_DAMAGED) from ended
        raise UnavailableError(_FAILED) from ended


def refusal(kind: int, payload: bytes, name: str) -> TouchstoneError:
    """The error for a last frame other than DATASET; `name` is the file's."""
    if kind == Kind.REFUSED:
        refusal = frames.Refusal.parse(payload)
        return InvalidRequestError(refusal.reason, refusal.field)
    if kind == Kind.BAD_LINES:
        bad = frames.BadLines.parse(payload)
        first = bad.lines[0]
        lines = "line is" if bad.total == 1 else "lines are"
        return BadLinesError(
            f"{bad.total:,} {lines} wrong in {name}, so nothing was stored. Line {first.line:,}: {first.reason}",
            [(line.line, line.reason) for line in bad.lines],
            bad.total,
            [LineReason(one.reason, one.count, one.lines) for one in bad.reasons],
        )
    log.error("the reader of an upload sent a frame of kind %d", kind)
    return UnavailableError(_FAILED)
