"""Whether a model fits into the free memory, checked before its engine starts."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions
from services.evaluator.engine.process import EngineError

_ASK_S = 10.0
SETTLE_S = 5.0
"""The memory of an engine that has just ended becomes free a moment later."""
_AGAIN_S = 0.25


class NoRoomError(EngineError):
    """The model needs more memory than is free."""


FreeGb = Callable[[EngineOptions], Awaitable[float]]
"""Free memory of the options' device, in units of 10^9 bytes. Raises EngineError when it cannot be read."""


async def free_gb(options: EngineOptions) -> float:
    return await _free_gpu(options) if options.device == "gpu" else _free_host()


async def require(options: EngineOptions, model: EngineModel, free: FreeGb = free_gb, settle_s: float = 0.0) -> None:
    """Raises NoRoomError when less is free than the model needs, and still is after `settle_s`.

    Does nothing where its need is not known.
    """
    if not model.memory_gb:
        return
    until = time.monotonic() + settle_s
    while (now := await free(options)) < model.memory_gb:
        if time.monotonic() >= until:
            where = "GPU memory" if options.device == "gpu" else "memory"
            raise NoRoomError(
                f"{model.name} needs {model.memory_gb:g} GB of {where}; {now:.1f} GB are free. Free some memory, or "
                "choose a smaller model.",
                final=True,
            )
        await asyncio.sleep(_AGAIN_S)


async def _free_gpu(options: EngineOptions) -> float:
    """Over the GPUs that the engine may use."""
    visible = options.env.get("CUDA_VISIBLE_DEVICES", "").strip()
    chosen = [f"--id={visible}"] if visible else []
    try:
        asking = await asyncio.create_subprocess_exec(
            *("nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", *chosen),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(options.env),
        )
    except OSError as error:
        raise EngineError(
            'nvidia-smi was not found, so the free GPU memory is unknown. Set device = "cpu", or memory_gb = 0 to '
            "start without the check.",
            final=True,
        ) from error
    try:
        async with asyncio.timeout(_ASK_S):
            said, _ = await asking.communicate()
    except TimeoutError as error:
        raise EngineError(f"nvidia-smi did not answer within {_ASK_S:g} s. Check the GPU driver.") from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            asking.kill()
    return free_of_listing(said.decode("utf-8", "replace"))


def free_of_listing(said: str) -> float:
    """The sum of nvidia-smi's lines, each a number of MiB."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if not lines or not all(line.isdigit() for line in lines):
        shown = " ".join(said.split())[:200]
        raise EngineError(f"nvidia-smi did not report the free GPU memory: {shown or 'no output'}.", final=True)
    return sum(map(int, lines)) * 2**20 / 1e9


def _free_host() -> float:
    """The memory that Linux expects to have for new programs without swapping."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if found is None:
        raise EngineError("/proc/meminfo does not report the available memory. Set memory_gb = 0.", final=True)
    return int(found[1]) * 1024 / 1e9
