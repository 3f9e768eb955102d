"""An engine's process."""

from __future__ import annotations

import pytest

from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.engine import memory
from services.evaluator.engine.process import EngineError
from tests.unit.evaluator.engine.models import MODEL, OPTIONS


async def test_too_little_free_memory_refuses_the_start_with_both_figures() -> None:
    async def free(_: EngineOptions) -> float:
        return 12.34

    with pytest.raises(EngineError) as caught:
        await memory.require(OPTIONS, MODEL, free, settle_s=0)
    assert caught.value.message == (
        "large needs 18 GB of GPU memory; 12.3 GB are free. Free some memory, or choose a smaller model."
    )
    assert caught.value.final
