"""A pipeline that runs the gate."""

from __future__ import annotations

import pytest

from tests.unit.client.command.gate.compared import Pipeline
from tests.unit.client.fakes import Fakes


@pytest.fixture
def pipeline(fakes: Fakes) -> Pipeline:
    return Pipeline(fakes)
