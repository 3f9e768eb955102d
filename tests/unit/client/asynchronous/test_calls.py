"""How the asynchronous client calls."""

from __future__ import annotations

import pytest

from services import errors
from tests.unit.client.fakes import JOB, Fakes
from touchstone_client import AsyncClient, LimitError


async def test_an_awaited_call_raises_the_same_errors(fakes: Fakes) -> None:
    fakes.answers["CancelJob"] = errors.LimitReachedError("Too many.", 7)
    async with AsyncClient() as client:
        with pytest.raises(LimitError) as raised:
            await client.cancel(JOB)
    assert raised.value.retry_after_s == 7
