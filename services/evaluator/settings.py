"""The evaluator's settings, read from the environment once."""

from __future__ import annotations

import math
import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path

from services import rpc
from services.errors import InvalidRequestError
from services.evaluator.providers.receiving import USUAL_BYTES


@dataclass(frozen=True, slots=True)
class Settings:
    """How this evaluator runs.

    `name` is unique in the installation and its key in the EVALUATORS bucket. Without `data_dir`, a local mirror of
    Hub data sets, rows come from the Hub. A unit that is not heard of for
    `ack_wait_s` goes to another evaluator. SIGTERM leaves `grace_s` to finish units. `unit_size` is the most items of a
    unit, which a crash can repeat; twice as many where as many calls go out at once. A job fails when its endpoint
    gives nothing but errors for `first_outage_s` before its first success and for `outage_s` after it. `results` is the
    address of the results service, which has the stored answers; empty when it is not known. `service_token` is what
    services show each other. `lm_eval` opens the suite of that name, if it is installed. A provider's batch is asked
    for its state after `batch_poll_s`, then ever more seldom, down to every `batch_most_poll_s`. One that may have
    begun without its id having been noted is looked for during `batch_settle_s`, which must be longer than such a call
    takes. All calls together hold at most `receive_max_bytes` of answers that are being read.
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

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError naming the variable that is wrong."""
        file = os.environ.get("TOUCHSTONE_ENDPOINTS", "")
        data = os.environ.get("TOUCHSTONE_DATA_DIR", "")
        if data and not Path(data).is_dir():
            raise InvalidRequestError(
                f"TOUCHSTONE_DATA_DIR is {data!r}, which is not a directory. Correct or unset it."
            )
        return cls(
            name=_name(os.environ.get("TOUCHSTONE_EVALUATOR_NAME") or _default_name()),
            listen=os.environ.get("TOUCHSTONE_EVALUATOR_LISTEN", "127.0.0.1:8053"),
            endpoints_file=Path(file) if file else None,
            data_dir=Path(data).resolve() if data else None,
            ack_wait_s=_number("TOUCHSTONE_ACK_WAIT_S", 10.0, least=1.0),
            grace_s=_number("TOUCHSTONE_GRACE_S", 20.0, least=0.0),
            unit_size=int(_number("TOUCHSTONE_UNIT_SIZE", 32, least=1)),
            first_outage_s=_number("TOUCHSTONE_FIRST_OUTAGE_S", 40.0, least=1.0),
            outage_s=_number("TOUCHSTONE_OUTAGE_S", 300.0, least=1.0),
            results=os.environ.get("TOUCHSTONE_RESULTS", "127.0.0.1:8052"),
            service_token=rpc.Settings.from_env().service_token,
            lm_eval=_switch("TOUCHSTONE_LM_EVAL"),
            batch_poll_s=_number("TOUCHSTONE_BATCH_POLL_S", 5.0, least=0.01),
            batch_most_poll_s=_number("TOUCHSTONE_BATCH_MOST_POLL_S", 60.0, least=0.01),
            batch_settle_s=_number("TOUCHSTONE_BATCH_SETTLE_S", 90.0, least=0.0),
            receive_max_bytes=int(_number("TOUCHSTONE_RECEIVE_MAX_BYTES", USUAL_BYTES, least=2**20, most=2**50)),
        )


def _default_name() -> str:
    host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname())[:60].strip("-") or "host"
    return f"{host}-{os.getpid()}"


def _name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name):
        raise InvalidRequestError(
            f"TOUCHSTONE_EVALUATOR_NAME is {name!r}; it may hold up to 80 letters, digits, - and _.",
        )
    return name


def _switch(variable: str) -> bool:
    text = os.environ.get(variable, "")
    if text not in ("", "0", "1"):
        raise InvalidRequestError(f"{variable} is {text!r}; it may be 0 or 1.")
    return text == "1"


def _number(variable: str, default: float, *, least: float, most: float = math.inf) -> float:
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        end = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise InvalidRequestError(f"{variable} is {text!r}; it must be a number {end}.")
    return value
