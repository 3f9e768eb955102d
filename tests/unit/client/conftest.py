"""The fake services, and an environment that names them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.unit.client.fakes import Fakes, serving


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    for name in [name for name in os.environ if name.startswith("TOUCHSTONE_")]:
        monkeypatch.delenv(name)
    with serving() as made:
        monkeypatch.setenv("TOUCHSTONE_SCHEDULER", made.address)
        monkeypatch.setenv("TOUCHSTONE_RESULTS", made.address)
        yield made
