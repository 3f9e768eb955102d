"""Lines of a log as text and as JSON, of the same records."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from services.bus import of_job
from services.telemetry.logs import formatter

WORDS = 'two\nlines, "quotes", é, \udcff'


def record(message: str = WORDS, error: BaseException | None = None, job_id: str = "") -> logging.LogRecord:
    trace = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("services.scheduler", logging.WARNING, "file.py", 1, "%s", (message,), trace)
    made.created, made.msecs = 1_700_000_000.007, 7.0
    made.__dict__.update(of_job(job_id))
    return made


@pytest.fixture
def as_json(monkeypatch: pytest.MonkeyPatch) -> logging.Formatter:
    monkeypatch.setenv("TOUCHSTONE_LOG_FORMAT", "json")
    return formatter()


def test_a_line_is_text_by_default() -> None:
    assert formatter().format(record("lost")) == "2023-11-14T22:13:20.007Z WARNING services.scheduler lost"


def test_a_line_is_one_object(as_json: logging.Formatter) -> None:
    line = as_json.format(record())
    assert "\n" not in line
    line.encode()
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.007Z",
        "level": "warning",
        "logger": "services.scheduler",
        "message": 'two\nlines, "quotes", é, ?',
    }


def test_a_line_about_a_job_has_its_id(as_json: logging.Formatter) -> None:
    assert json.loads(as_json.format(record(job_id="01a2")))["job_id"] == "01a2"


def test_a_trace_stays_in_its_line(as_json: logging.Formatter) -> None:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        line: dict[str, Any] = json.loads(as_json.format(record(error=error)))
    assert line["error"].startswith("Traceback")
    assert line["error"].endswith("ValueError: wrong")


def test_a_process_writes_all_lines_in_the_form_that_is_set() -> None:
    code = (
        "import logging\n"
        "from services import rpc\n"
        "async def main(stop):\n"
        "    for number in range(60): logging.getLogger('services').info('line %d', number, extra={'job_id': 'j'})\n"
        "rpc.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"TOUCHSTONE_LOG_FORMAT": "json", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line.get("job_id") for line in lines] == ["j"] * 51
    assert lines[-1]["message"] == "10 more lines like this within 10 s; the last: line 59"
