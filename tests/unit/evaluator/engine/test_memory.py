"""Memory that a model needs and a host has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.engine import memory
from services.evaluator.engine.process import EngineError
from tests.unit.evaluator.engine.models import MODEL, OPTIONS


async def test_memory_that_comes_back_in_a_moment_is_waited_for() -> None:
    answers = iter([1.0, 20.0])

    async def free(_: EngineOptions) -> float:
        return next(answers)

    await memory.require(OPTIONS, MODEL, free, settle_s=5)
    assert next(answers, None) is None, "the second look was needed and was the last"


async def test_a_model_of_unknown_need_is_not_checked() -> None:
    looks: list[EngineOptions] = []

    async def free(options: EngineOptions) -> float:
        looks.append(options)
        return 0.0

    await memory.require(OPTIONS, replace(MODEL, memory_gb=0), free)
    assert looks == []


async def test_the_hosts_free_memory_is_read() -> None:
    assert 0 < await memory.free_gb(replace(OPTIONS, device="cpu")) < 100_000


async def test_a_gpu_without_its_tool_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="nvidia-smi was not found"):
        await memory.free_gb(replace(OPTIONS, env={"PATH": str(tmp_path)}))


async def test_free_memory_is_summed_over_the_gpus_that_the_engine_sees(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncase "$*" in *--id=0,1*) echo 1000; echo 2000;; *) echo 9; esac\n')
    tool.chmod(0o755)
    options = replace(OPTIONS, env={"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"})
    assert await memory.free_gb(options) == 3000 * 2**20 / 1e9


def test_a_listing_that_is_no_number_is_shown() -> None:
    with pytest.raises(EngineError, match=r"did not report the free GPU memory: \[N/A\]"):
        memory.free_of_listing("[N/A]\n")
