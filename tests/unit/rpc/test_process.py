"""A log is readable and bounded, however often a service says the same."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from services.rpc.process import MOST_LINES, WINDOW_S, ThrottledHandler


class Log:
    """A logger on a text stream, with a clock that the test moves."""

    def __init__(self) -> None:
        self.stream, self.time = io.StringIO(), 0.0
        self.handler = ThrottledHandler(self.stream, lambda: self.time)
        self.logger = logging.Logger("service")
        self.logger.addHandler(self.handler)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def warn(self, number: int) -> None:
        self.logger.warning("NATS did not store unit %d", number)


@pytest.fixture
def log() -> Iterator[Log]:
    made = Log()
    yield made
    made.handler.close()


def test_a_line_that_comes_thousands_of_times_is_counted(log: Log) -> None:
    for number in range(51_180):
        log.warn(number)
    assert len(log.lines) == MOST_LINES
    log.time += WINDOW_S
    log.logger.info("another line")
    assert log.lines[MOST_LINES:] == [
        "51,130 more lines like this within 10 s; the last: NATS did not store unit 51179",
        "another line",
    ]


def test_other_lines_are_written_meanwhile(log: Log) -> None:
    for number in range(1000):
        log.warn(number)
    log.logger.warning("something else")
    assert log.lines[-1] == "something else"
    assert len(log.lines) == MOST_LINES + 1


def test_each_window_starts_anew(log: Log) -> None:
    for number in range(2 * MOST_LINES):
        log.time = WINDOW_S * (number // MOST_LINES)
        log.warn(number)
    assert len(log.lines) == 2 * MOST_LINES


def test_the_count_is_written_at_the_end(log: Log) -> None:
    for number in range(MOST_LINES + 2):
        log.warn(number)
    log.handler.close()
    assert log.lines[-1].startswith("2 more lines like this")
