"""A scheduler process whose clock runs fast: `fast_scheduler.py <origin> <speed>`, the rest from the environment."""

from __future__ import annotations

import sys
import time

from services import rpc
from services.scheduler.server import serve
from services.scheduler.settings import Settings


def fast(origin: float, speed: float) -> float:
    """The same in every process that is given the same origin and speed."""
    return origin + (time.time() - origin) * speed


if __name__ == "__main__":
    origin, speed = float(sys.argv[1]), float(sys.argv[2])
    rpc.run(lambda stop: serve(Settings.from_env(), stop, lambda: fast(origin, speed)))
