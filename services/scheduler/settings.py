"""The scheduler's settings, read from the environment once."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from services import bus, environment, rpc
from services.telemetry import serving


@dataclass(frozen=True)
class Limits:
    """The limits of the installation. Times are in seconds."""

    running_jobs: int = 3
    batch_jobs: int = 10
    """In addition, jobs that use a provider's batch API, which wait for a day and do not keep a slot busy."""
    pending_per_owner: int = 10
    job_time_s: int = 3 * 3600
    batch_time_s: int = 48 * 3600
    """Instead of `job_time_s` for jobs that use a provider's batch API, which may take a day."""
    requests_per_job: int = 50_000
    """Most rows of a dataset in one job; 0 means any number."""
    planning_s: float = 900.0
    """Most time for reading a job's data."""
    queue_retry_after_s: int = 300
    ageing_s: float = 600.0
    """Waiting this long raises a job by one priority level."""
    error_share: float = 0.05
    """Above this share of infrastructure errors a job fails."""
    keep_finished_s: float = 24 * 3600
    absent_after_s: float = 10.0
    """An evaluator without an announcement for this long is gone."""
    schedules_per_owner: int = 20
    schedule_period_s: float = 60.0
    """Least time between two jobs of a schedule."""

    @classmethod
    def from_env(cls) -> Limits:
        """Raises InvalidRequestError naming the invalid variable."""
        whole, number, long_s = environment.whole, environment.number, environment.LONG_S
        return cls(
            running_jobs=whole("TOUCHSTONE_RUNNING_JOBS", cls.running_jobs, 1, 10_000),
            batch_jobs=whole("TOUCHSTONE_BATCH_JOBS", cls.batch_jobs, 1, 10_000),
            pending_per_owner=whole("TOUCHSTONE_PENDING_PER_USER", cls.pending_per_owner, 1, 1_000_000),
            job_time_s=whole("TOUCHSTONE_JOB_TIME_S", cls.job_time_s, 1, long_s),
            batch_time_s=whole("TOUCHSTONE_BATCH_JOB_TIME_S", cls.batch_time_s, 1, long_s),
            requests_per_job=whole("TOUCHSTONE_MAX_REQUESTS_PER_JOB", cls.requests_per_job, 0, 2**31 - 1),
            planning_s=number("TOUCHSTONE_PLANNING_S", cls.planning_s, 1, long_s),
            queue_retry_after_s=whole("TOUCHSTONE_QUEUE_RETRY_AFTER_S", cls.queue_retry_after_s, 1, 86_400),
            ageing_s=number("TOUCHSTONE_AGEING_S", cls.ageing_s, 1, long_s),
            error_share=number("TOUCHSTONE_ERROR_SHARE", cls.error_share, 0, 1),
            absent_after_s=number("TOUCHSTONE_ABSENT_AFTER_S", cls.absent_after_s, 1, long_s),
            schedules_per_owner=whole("TOUCHSTONE_SCHEDULES_PER_USER", cls.schedules_per_owner, 0, 1_000_000),
            schedule_period_s=number("TOUCHSTONE_SCHEDULE_PERIOD_S", cls.schedule_period_s, 1, long_s),
        )


@dataclass(frozen=True)
class WebhookSettings:
    """How webhooks are called: at most `tries` calls, spread over about `span_s`.

    Addresses of private networks are called only if `private` is set, and addresses of this machine also with
    `loopback`.
    """

    per_owner: int = 20
    tries: int = 8
    span_s: float = 3600.0
    connect_s: float = 5.0
    total_s: float = 15.0
    at_once_per_host: int = 4
    private: bool = False
    loopback: bool = False

    @classmethod
    def from_env(cls, *, local: bool) -> WebhookSettings:
        """`local`: only this machine's user is served. Raises InvalidRequestError."""
        return cls(
            per_owner=environment.whole("TOUCHSTONE_WEBHOOKS_PER_USER", cls.per_owner, 0, 1_000_000),
            tries=environment.whole("TOUCHSTONE_WEBHOOK_TRIES", cls.tries, 1, 1000),
            span_s=environment.number("TOUCHSTONE_WEBHOOK_SPAN_S", cls.span_s, 0, environment.LONG_S),
            total_s=environment.number("TOUCHSTONE_WEBHOOK_TIMEOUT_S", cls.total_s, 0.1, 3600),
            private=environment.switch("TOUCHSTONE_WEBHOOKS_PRIVATE"),
            loopback=local,
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """`name` identifies this process: a restart under the same name takes its own lease over at once.

    `reads` is "open", or "own" where users may read their own jobs only. `state_dir` is the launcher's, on whose disk
    NATS and the results service write; None where they are elsewhere.
    """

    name: str
    listen: str
    results: str
    bus: bus.Settings
    rpc: rpc.Settings
    limits: Limits
    webhooks: WebhookSettings = WebhookSettings()
    reads: str = "open"
    state_dir: Path | None = None
    metrics: serving.Settings = field(default_factory=serving.Settings)

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError when variables contradict each other or hold what they may not."""
        auth = rpc.Settings.from_env()
        return cls(
            name=environment.text("TOUCHSTONE_SCHEDULER_NAME") or f"{socket.gethostname()}-{os.getpid()}",
            listen=environment.listen("TOUCHSTONE_SCHEDULER_LISTEN", "127.0.0.1:8051"),
            results=environment.addresses("TOUCHSTONE_RESULTS", "127.0.0.1:8052"),
            bus=bus.Settings.from_env(),
            rpc=auth,
            limits=Limits.from_env(),
            webhooks=WebhookSettings.from_env(local=auth.auth == "local"),
            reads=environment.choice("TOUCHSTONE_READS", "open", ("open", "own")),
            state_dir=environment.state_folder() if environment.text("TOUCHSTONE_STATE_DIR") else None,
            metrics=serving.Settings.from_env(),
        )
