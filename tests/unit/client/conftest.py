"""The fake services, and an environment that names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest

from tests.unit.client.fakes import Fakes, serving
from touchstone_client import command


@pytest.fixture(scope="session", autouse=True)
def one_parser() -> Iterator[None]:
    """Hundreds of tests run a verb. Of each, making the parser of all verbs takes 30 ms, and a parser keeps nothing."""
    with patch.object(command, "parser", cache(command.parser)):
        yield


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    for name in [name for name in os.environ if name.startswith("TOUCHSTONE_")]:
        monkeypatch.delenv(name)
    with serving() as made:
        monkeypatch.setenv("TOUCHSTONE_SCHEDULER", made.address)
        monkeypatch.setenv("TOUCHSTONE_RESULTS", made.address)
        yield made
