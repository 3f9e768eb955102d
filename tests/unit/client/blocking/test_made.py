"""The blocking client is what `make blocking` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blocking_client import CLIENT, MODULES, make


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make(folder)
    return folder


@pytest.mark.parametrize("name", MODULES)
def test_the_methods_that_wait_are_those_that_are_awaited(made: Path, name: str) -> None:
    present = (CLIENT / "blocking" / f"{name}.py").read_text("utf-8")
    assert present == (made / f"{name}.py").read_text("utf-8"), "Run: make blocking"
