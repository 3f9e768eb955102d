"""What the gateway reads from its environment, once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from services import environment
from services.errors import InvalidRequestError
from services.gateway.access import oidc_settings
from services.telemetry import serving


@dataclass(frozen=True)
class Settings:
    """Where the gateway listens, which services it asks, and its limits.

    `scheduler` and `results` are gRPC addresses, host:port or several joined by commas; `replica` is that of the
    results' copy, empty without one. `call_timeout_s` is the deadline of every call to them. Limits hold per user and
    per gateway process. `upload_max_bytes` is the most of an upload as it is sent, perhaps compressed; one that sends
    nothing for `upload_idle_s` is ended. `state_dir` is the launcher's, on whose disk the services write; None if they
    are elsewhere. With `airflow_url`, experiments that REST starts run in the DAG `airflow_dag` there, for which the
    gateway needs a token, or a user with a password. `oidc` is the provider with which browsers may log in; None
    without one.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    scheduler: str = "127.0.0.1:8051"
    results: str = "127.0.0.1:8052"
    replica: str = ""
    requests_per_minute: int = 100
    streams_per_user: int = 8
    waits_per_user: int = 32
    uploads_per_user: int = 4
    calls_per_user: int = 32
    upload_max_bytes: int = 2 * 10**9
    upload_idle_s: float = 45
    connections_per_address: int = 1000
    header_timeout_s: float = 10
    stream_max_age_s: float = 900
    heartbeat_s: float = 15
    call_timeout_s: float = 3
    state_dir: Path | None = None
    airflow_url: str = ""
    airflow_dag: str = "touchstone_bench"
    airflow_user: str = ""
    airflow_password: str = field(default="", repr=False)
    airflow_token: str = field(default="", repr=False)
    oidc: oidc_settings.Settings | None = None
    metrics: serving.Settings = field(default_factory=serving.Settings)

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError for an invalid value."""
        limit = environment.whole
        settings = cls(
            host=environment.own_host("TOUCHSTONE_HTTP_HOST", cls.host),
            port=limit("TOUCHSTONE_HTTP_PORT", cls.port, 0, environment.MOST_PORT),
            scheduler=environment.addresses("TOUCHSTONE_SCHEDULER", cls.scheduler),
            results=environment.addresses("TOUCHSTONE_RESULTS", cls.results),
            replica=environment.addresses("TOUCHSTONE_REPLICA", cls.replica),
            requests_per_minute=limit("TOUCHSTONE_REQUESTS_PER_MINUTE", cls.requests_per_minute, 1, 1_000_000),
            streams_per_user=limit("TOUCHSTONE_STREAMS_PER_USER", cls.streams_per_user, 1, 10_000),
            waits_per_user=limit("TOUCHSTONE_WAITS_PER_USER", cls.waits_per_user, 1, 10_000),
            uploads_per_user=limit("TOUCHSTONE_UPLOADS_PER_USER", cls.uploads_per_user, 1, 1000),
            calls_per_user=limit("TOUCHSTONE_CALLS_PER_USER", cls.calls_per_user, 1, 10_000),
            upload_max_bytes=limit("TOUCHSTONE_UPLOAD_MAX_BYTES", cls.upload_max_bytes, 1, environment.MOST_BYTES),
            upload_idle_s=environment.number("TOUCHSTONE_UPLOAD_IDLE_S", cls.upload_idle_s, 1, 3600),
            call_timeout_s=environment.number("TOUCHSTONE_CALL_TIMEOUT_S", cls.call_timeout_s, 1, 600),
            connections_per_address=limit(
                "TOUCHSTONE_CONNECTIONS_PER_ADDRESS", cls.connections_per_address, 1, 100_000
            ),
            header_timeout_s=environment.number("TOUCHSTONE_HEADER_TIMEOUT_S", cls.header_timeout_s, 1, 3600),
            stream_max_age_s=environment.number("TOUCHSTONE_STREAM_MAX_AGE_S", cls.stream_max_age_s, 1, 86_400),
            state_dir=environment.state_folder() if environment.text("TOUCHSTONE_STATE_DIR") else None,
            airflow_url=environment.url("TOUCHSTONE_AIRFLOW_URL", cls.airflow_url, ("http", "https")),
            airflow_dag=environment.text("TOUCHSTONE_AIRFLOW_DAG", cls.airflow_dag),
            airflow_user=environment.text("TOUCHSTONE_AIRFLOW_USER"),
            airflow_password=environment.text("TOUCHSTONE_AIRFLOW_PASSWORD"),
            airflow_token=environment.text("TOUCHSTONE_AIRFLOW_TOKEN"),
            oidc=oidc_settings.Settings.from_env(),
            metrics=serving.Settings.from_env(),
        )
        if settings.airflow_url and not (settings.airflow_token or settings.airflow_user):
            raise InvalidRequestError(
                "TOUCHSTONE_AIRFLOW_URL needs TOUCHSTONE_AIRFLOW_TOKEN, or TOUCHSTONE_AIRFLOW_USER and "
                "TOUCHSTONE_AIRFLOW_PASSWORD."
            )
        return settings

    def require_loopback(self) -> None:
        """Without tokens anyone who reaches the port is an admin. Raises InvalidRequestError for another host, and
        where browsers are to log in."""
        if self.oidc:
            raise InvalidRequestError("TOUCHSTONE_OIDC_ISSUER needs TOUCHSTONE_AUTH=token: local mode has no login.")
        if self.host == "localhost":
            return
        try:
            loopback = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise InvalidRequestError(
                f"TOUCHSTONE_HTTP_HOST is {self.host}, but local mode needs no token and so listens only on "
                "loopback. Set TOUCHSTONE_AUTH=token to listen there."
            )
