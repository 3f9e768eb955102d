"""A gateway over the fake services for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.gateway.gateway_server import Running, running


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running() as started:
        yield started
