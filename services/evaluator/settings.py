"""The evaluator's settings, read from the environment once."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

from services import environment, rpc
from services.errors import InvalidRequestError
from services.evaluator.plugins.contract import Limits
from services.evaluator.providers.protocol.receiving import USUAL_BYTES
from services.telemetry import serving


@dataclass(frozen=True)
class Settings:
    """How this evaluator runs.

    `name` is unique in the installation and its key in the EVALUATORS bucket. Without `data_dir`, a local mirror of Hub
    data sets, rows come from the Hub. A unit without a heartbeat for `ack_wait_s` goes to another evaluator. SIGTERM
    leaves `grace_s` to finish units. `unit_size` is the most items of a unit, which a crash can repeat; it doubles if
    that many calls run at a time. A job fails when its endpoint gives nothing but errors for `first_outage_s` before
    its first success and for `outage_s` after it. `results` is the address of the results service, which has the stored
    answers; empty when unknown. `service_token` is what services show each other. `lm_eval` enables the suite of that
    name, if it is installed. A provider's batch is polled after `batch_poll_s`, then less and less often, down to every
    `batch_most_poll_s`. A batch that may have begun before its id was noted is searched for during `batch_settle_s`,
    which must be longer than such a call takes. All calls together hold at most `receive_max_bytes` of answers that are
    being read. `plugins` limits the process of an installed package.
    """

    name: str
    listen: str
    endpoints_file: Path | None = None
    data_dir: Path | None = None
    ack_wait_s: float = 10.0
    grace_s: float = 20.0
    unit_size: int = 32
    first_outage_s: float = 40.0
    outage_s: float = 300.0
    results: str = ""
    service_token: str = field(default="", repr=False)
    lm_eval: bool = False
    batch_poll_s: float = 5.0
    batch_most_poll_s: float = 60.0
    batch_settle_s: float = 90.0
    receive_max_bytes: int = USUAL_BYTES
    plugins: Limits = field(default_factory=Limits)
    metrics: serving.Settings = field(default_factory=serving.Settings)

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError naming the invalid variable."""
        return cls(
            name=_name(environment.text("TOUCHSTONE_EVALUATOR_NAME") or _default_name()),
            listen=environment.listen("TOUCHSTONE_EVALUATOR_LISTEN", "127.0.0.1:8053"),
            endpoints_file=environment.file("TOUCHSTONE_ENDPOINTS", "a TOML file of endpoints"),
            data_dir=environment.folder("TOUCHSTONE_DATA_DIR", "the folder of a data mirror"),
            ack_wait_s=environment.number("TOUCHSTONE_ACK_WAIT_S", cls.ack_wait_s, 1, 3600),
            grace_s=environment.number("TOUCHSTONE_GRACE_S", cls.grace_s, 0, 3600),
            unit_size=environment.whole("TOUCHSTONE_UNIT_SIZE", cls.unit_size, 1, 10_000),
            first_outage_s=environment.number("TOUCHSTONE_FIRST_OUTAGE_S", cls.first_outage_s, 1, environment.LONG_S),
            outage_s=environment.number("TOUCHSTONE_OUTAGE_S", cls.outage_s, 1, environment.LONG_S),
            results=environment.addresses("TOUCHSTONE_RESULTS", "127.0.0.1:8052"),
            service_token=rpc.Settings.from_env().service_token,
            lm_eval=environment.switch("TOUCHSTONE_LM_EVAL"),
            batch_poll_s=environment.number("TOUCHSTONE_BATCH_POLL_S", cls.batch_poll_s, 0.01, 86_400),
            batch_most_poll_s=environment.number("TOUCHSTONE_BATCH_MOST_POLL_S", cls.batch_most_poll_s, 0.01, 86_400),
            batch_settle_s=environment.number("TOUCHSTONE_BATCH_SETTLE_S", cls.batch_settle_s, 0, 86_400),
            receive_max_bytes=environment.whole(
                "TOUCHSTONE_RECEIVE_MAX_BYTES", USUAL_BYTES, 2**20, environment.MOST_BYTES
            ),
            plugins=Limits(
                import_s=environment.number("TOUCHSTONE_PLUGIN_IMPORT_S", Limits.import_s, 1, 3600),
                data_s=environment.number("TOUCHSTONE_PLUGIN_DATA_S", Limits.data_s, 1, 86_400),
                score_s=environment.number("TOUCHSTONE_PLUGIN_SCORE_S", Limits.score_s, 0.1, 3600),
                memory_bytes=environment.whole(
                    "TOUCHSTONE_PLUGIN_MEMORY_BYTES", Limits.memory_bytes, 2**28, environment.MOST_BYTES
                ),
            ),
            metrics=serving.Settings.from_env(),
        )


def _default_name() -> str:
    host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname())[:60].strip("-") or "host"
    return f"{host}-{os.getpid()}"


def _name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name):
        raise InvalidRequestError(
            f"TOUCHSTONE_EVALUATOR_NAME must be 1 to 80 letters, digits, - and _; it is {name[:80]!r}."
        )
    return name
