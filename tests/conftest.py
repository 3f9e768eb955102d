"""Fixtures that every test may use."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import parts
from tests.nats_server import NatsCluster, NatsServer

# The same examples every time: a rare one found by chance in CI would fail a change that has nothing to do with it.
# And no verdict on speed: a busy machine is no fault of what is tested.
# As the examples do not change, most of them have told what they can: only `make nightly` tries all.
hypothesis.settings.register_profile(
    "touchstone",
    derandomize=True,
    deadline=None,
    max_examples=100 if parts.NIGHTLY else 25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("touchstone")


def pytest_addoption(parser: pytest.Parser) -> None:
    parts.add_option(parser)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # None lets pytest decide.
    return parts.passed_over(config, collection_path) or None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Last, when the markers have made their choice: each part is a share of what would run.
    parts.leave_out(config, items)
    parts.mixed(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    # Nearly all that collecting makes is kept, so that the collector would look through it again and again for nothing.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    # What collecting made stays until the end: the collector need not go through it during the tests, nor five times
    # more when pytest ends. Python itself frees it at last, as DuckDB would tell of leaks otherwise.
    gc.freeze()
    atexit.register(gc.unfreeze)


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server of this test's own."""
    server = NatsServer().start(tmp_path / "nats")
    yield server
    server.stop()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    """Three nodes of NATS, none of which has been started."""
    made = NatsCluster(tmp_path / "nats")
    yield made
    made.stop()
