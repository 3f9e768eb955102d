"""Creating the streams and copying them to more nodes, also while a NATS cluster is slow or lacks a node."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext, api

from services.bus.contract import (
    ERR_CLUSTER_NOT_READY,
    ERR_NOT_CLUSTERED,
    ERR_STREAM_EXISTS,
    ERR_STREAM_UNSUPPORTED,
    JOBS,
    differing,
    stream_configs,
)
from services.errors import DamagedFilesError, InvalidRequestError, UnavailableError

log = logging.getLogger(__name__)

T = TypeVar("T")

DEADLINE_S = 60.0
"""For all streams together: a cluster that has just started first elects leaders."""
_RETRY_S = 0.25
_LOOK_S = 0.5
_AGAIN_S = 10.0
_POSITIONS_PER_S = 100
"""More than are ever written on average, so that a bucket created later begins at higher positions. Twelve digits."""


async def ensure(
    js: JetStreamContext, results_max_bytes: int, replicas: int = 1, deadline_s: float = DEADLINE_S
) -> None:
    """Creates missing streams. Existing ones keep their settings, except those that would lose something. Safe from
    several services at once. Raises UnavailableError when NATS cannot do it in time."""
    deadline = time.monotonic() + deadline_s
    for config in stream_configs(results_max_bytes, replicas):
        await _in_time(deadline, str(config.name), partial(_ensure_one, js, config))


async def _ensure_one(js: JetStreamContext, config: api.StreamConfig) -> None:
    present = await _present(js, config)
    if changes := differing(present, config):
        await js.update_stream(present.evolve(**changes))


async def _present(js: JetStreamContext, config: api.StreamConfig) -> api.StreamConfig:
    """A stream's settings; creates it with these if it is missing."""
    assert config.name is not None
    try:
        return (await js.stream_info(config.name)).config
    except nats.js.errors.ServerError as error:
        if error.err_code != ERR_STREAM_UNSUPPORTED:
            raise
        raise DamagedFilesError(
            f"The stream {config.name} is damaged, and NATS cannot open it: {error.description}. Stop Touchstone, "
            "then run `touchstone restore BACKUP` with a backup, or `touchstone repair` without one. Both keep the "
            "damaged files."
        ) from error
    except nats.js.errors.NotFoundError:
        if config.name == f"KV_{JOBS}":
            # Ids of events come from positions of this bucket, and must grow even when it was lost.
            config.first_seq = int(time.time() * _POSITIONS_PER_S)
    try:
        return (await js.add_stream(config)).config
    except nats.js.errors.APIError as error:
        if error.err_code == ERR_NOT_CLUSTERED:
            raise InvalidRequestError(
                f"TOUCHSTONE_NATS_REPLICAS is {config.num_replicas}, but NATS is not a cluster. Set it to 1, or start "
                "NATS as a cluster."
            ) from error
        if error.err_code != ERR_STREAM_EXISTS:
            raise
    # Another service made it a moment ago with the same settings.
    return (await js.stream_info(config.name)).config


async def _in_time(deadline: float, stream: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeats what fails because the cluster is not ready yet. Raises UnavailableError after the deadline."""
    while True:
        try:
            return await attempt()
        except (nats.errors.Error, TimeoutError) as error:
            if not _may_pass(error):
                raise
            if time.monotonic() >= deadline:
                raise UnavailableError(
                    f"NATS did not open or create the stream {stream} in time ({_reason(error)}). A cluster needs more "
                    "than half of its nodes, and TOUCHSTONE_NATS_REPLICAS of them for a new stream."
                ) from error
            log.info("waiting for NATS to open or create %s: %s", stream, _reason(error))
        await asyncio.sleep(_RETRY_S)


def _may_pass(error: Exception) -> bool:
    """Whether another try may help: without a leader a cluster does not answer, or says so."""
    if isinstance(error, nats.js.errors.APIError):
        # A stream that another service is creating at this moment is found or not, from one answer to the next.
        passing = (nats.js.errors.ServiceUnavailableError, nats.js.errors.NotFoundError)
        return isinstance(error, passing) or error.err_code in ERR_CLUSTER_NOT_READY
    return not isinstance(error, nats.errors.ConnectionClosedError)


def _reason(error: Exception) -> str:
    description = error.description if isinstance(error, nats.js.errors.APIError) else str(error)
    return description or type(error).__name__


async def replicate(
    js: JetStreamContext, replicas: int, tell: Callable[[str], None], deadline_s: float | None = None
) -> None:
    """Copies each stream to at least this many nodes, one after another; each is in sync before the next begins.

    A stream that has as many copies already, or more, is only waited for. `tell` gets a line per change. After a crash
    another call continues. Raises UnavailableError when a stream takes longer than `deadline_s`, which may be None.
    """
    if replicas == 1:
        return
    for config in stream_configs(results_max_bytes=2**20):
        name = str(config.name)
        deadline = float("inf") if deadline_s is None else time.monotonic() + deadline_s
        present = (await _in_time(deadline, name, partial(js.stream_info, name))).config
        if (present.num_replicas or 1) < replicas:
            tell(f"copying {name} to {replicas} nodes")
            more = present.evolve(num_replicas=replicas)
            await _in_time(deadline, name, partial(js.update_stream, more))
        await _in_sync(js, name, deadline)


async def _in_sync(js: JetStreamContext, stream: str, deadline: float) -> None:
    """Waits until the nodes of a stream have all of it. A node that is away is not waited for, as the majority has all
    of it."""
    while True:
        with suppress(nats.errors.Error, TimeoutError):
            found = await js.stream_info(stream)
            copies = found.cluster.replicas or [] if found.cluster else []
            present = [copy for copy in copies if not copy.offline]
            # The leader is not among the replicas.
            enough = 1 + len(present) > (found.config.num_replicas or 1) // 2
            if enough and len(copies) + 1 >= (found.config.num_replicas or 1) and all(c.current for c in present):
                return
        if time.monotonic() >= deadline:
            raise UnavailableError(f"The copies of {stream} are not in sync in time. Look at the logs of the nodes.")
        await asyncio.sleep(_LOOK_S)


async def keep_replicated(js: JetStreamContext, replicas: int) -> None:
    """Does `replicate`, again until it succeeds; then waits for ever."""
    while True:
        try:
            await replicate(js, replicas, lambda line: log.info("%s", line))
            break
        except (nats.errors.Error, UnavailableError, TimeoutError) as error:
            log.warning("cannot copy the streams to %d nodes, trying again: %s", replicas, error)
        await asyncio.sleep(_AGAIN_S)
    await asyncio.Event().wait()
