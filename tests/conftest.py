"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nats_server import NatsServer


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server of this test's own."""
    server = NatsServer().start(tmp_path / "nats")
    yield server
    server.stop()
