"""The scheduler's settings, read from the environment once."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from services import bus, rpc


@dataclass(frozen=True)
class Limits:
    """What the installation allows. Times in seconds."""

    running_jobs: int = 3
    pending_per_owner: int = 10
    job_time_s: int = 3 * 3600
    planning_s: float = 900.0
    """Most time for reading a job's data."""
    queue_retry_after_s: int = 300
    ageing_s: float = 600.0
    """Waiting this long raises a job by one priority level."""
    error_share: float = 0.05
    """Above this share of infrastructure errors a job fails."""
    keep_finished_s: float = 24 * 3600
    absent_after_s: float = 10.0
    """An evaluator that has not announced itself for so long is gone."""

    @classmethod
    def from_env(cls) -> Limits:
        def number(name: str, default: float) -> float:
            return float(os.environ.get(f"TOUCHSTONE_{name}", default))

        return cls(
            running_jobs=int(number("RUNNING_JOBS", cls.running_jobs)),
            pending_per_owner=int(number("PENDING_PER_USER", cls.pending_per_owner)),
            job_time_s=int(number("JOB_TIME_S", cls.job_time_s)),
            planning_s=number("PLANNING_S", cls.planning_s),
            queue_retry_after_s=int(number("QUEUE_RETRY_AFTER_S", cls.queue_retry_after_s)),
            ageing_s=number("AGEING_S", cls.ageing_s),
            error_share=number("ERROR_SHARE", cls.error_share),
            absent_after_s=number("ABSENT_AFTER_S", cls.absent_after_s),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """`name` identifies this process: a restart under the same name takes its own lease over at once."""

    name: str
    listen: str
    results: str
    bus: bus.Settings
    rpc: rpc.Settings
    limits: Limits

    @classmethod
    def from_env(cls) -> Settings:
        return cls(
            name=os.environ.get("TOUCHSTONE_SCHEDULER_NAME", f"{socket.gethostname()}-{os.getpid()}"),
            listen=os.environ.get("TOUCHSTONE_SCHEDULER_LISTEN", "127.0.0.1:50051"),
            results=os.environ.get("TOUCHSTONE_RESULTS", "127.0.0.1:50052"),
            bus=bus.Settings.from_env(),
            rpc=rpc.Settings.from_env(),
            limits=Limits.from_env(),
        )
