"""How lines of a process's log are written: as text for people, or as JSON for what collects logs."""

from __future__ import annotations

import json
import logging
import time

from services import environment
from services.errors import sendable

TEXT, JSON = "text", "json"
_LINE, _TIME = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"


class _JsonFormatter(logging.Formatter):
    """One object per line: `time`, `level`, `logger`, `message`; `job_id` and `trace_id` if the line is about a job,
    and `error` with the trace of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        at = self.formatTime(record, self.datefmt)
        line = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": sendable(record.getMessage()),
        }
        if job_id := getattr(record, "job_id", ""):
            line |= {"job_id": job_id, "trace_id": job_id.replace("-", "")}
        if record.exc_info:
            line["error"] = sendable(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


def formatter() -> logging.Formatter:
    """As TOUCHSTONE_LOG_FORMAT says. Raises InvalidRequestError for another value."""
    chosen = environment.choice("TOUCHSTONE_LOG_FORMAT", TEXT, (TEXT, JSON))
    made = (_JsonFormatter if chosen == JSON else logging.Formatter)(_LINE, _TIME)
    made.converter = time.gmtime
    return made
