"""What a model's files tell, when memory suffices, and how crashes add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.engine import memory, model_files
from services.evaluator.engine.crashes import Crashes
from services.evaluator.engine.host import EngineHost
from services.evaluator.engine.options import EngineModel, EngineOptions
from services.evaluator.engine.process import EngineError
from services.evaluator.providers.base import Provider, ProviderError

LARGE = 3 * 2**20


def safetensors(path: Path, data: bytes, dtype: str = "F32", tensors: int = 4) -> None:
    """A safetensors file of equal tensors; `data` is divided among them."""
    part = len(data) // tensors
    width = {"F32": 4, "U8": 1}[dtype]
    header: dict[str, Any] = {
        f"layer.{i}": {"dtype": dtype, "shape": [part // width], "data_offsets": [i * part, (i + 1) * part]}
        for i in range(tensors)
    }
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)


def model_folder(folder: Path, data: bytes = bytes(LARGE), template: str = "{{ messages }}") -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    (folder / "chat_template.jinja").write_text(template)
    safetensors(folder / "model.safetensors", data)
    return folder


def test_a_model_folder_tells_size_parameters_context_and_number_format(tmp_path: Path) -> None:
    files = model_files.look(model_folder(tmp_path / "a"))
    assert files.parameters_b == round(LARGE / 4 / 1e9, 6)
    assert files.context_length == 4096
    assert files.weights == "F32"
    assert files.disk_bytes > LARGE
    assert files.digest.startswith("sampled-sha256:")


def test_the_same_files_elsewhere_have_the_same_digest(tmp_path: Path) -> None:
    assert (
        model_files.look(model_folder(tmp_path / "a")).digest == model_files.look(model_folder(tmp_path / "b")).digest
    )


@pytest.mark.parametrize("tensor", [0, 1, 2, 3])
def test_another_training_of_any_one_tensor_changes_the_digest(tmp_path: Path, tensor: int) -> None:
    part = LARGE // 4
    trained = bytes(tensor * part) + b"\1" * part + bytes((3 - tensor) * part)
    first = model_files.look(model_folder(tmp_path / "a"))
    second = model_files.look(model_folder(tmp_path / "b", trained))
    assert first.digest != second.digest
    assert first.disk_bytes == second.disk_bytes


def test_another_chat_template_changes_the_digest(tmp_path: Path) -> None:
    first = model_files.look(model_folder(tmp_path / "a"))
    second = model_files.look(model_folder(tmp_path / "b", template="{{ message }}"))
    assert first.digest != second.digest


def test_a_large_file_of_another_format_is_sampled_all_over(tmp_path: Path) -> None:
    digests = set()
    for name, ones in (("a", 0), ("b", LARGE // 2)):
        (tmp_path / name).mkdir()
        place = tmp_path / name / "model.gguf"
        place.write_bytes(bytes(LARGE - ones) + b"\1" * ones)
        digests.add(model_files.look(place).digest)
    assert len(digests) == 2


def test_packed_weights_do_not_pass_for_a_count_of_parameters(tmp_path: Path) -> None:
    safetensors(tmp_path / "model.safetensors", bytes(LARGE), "U8")
    assert model_files.look(tmp_path).parameters_b == 0


def test_a_damaged_header_is_read_as_any_other_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((50).to_bytes(8, "little") + b"[" * LARGE)
    assert model_files.look(tmp_path).digest


def test_a_hub_id_is_found_in_the_cache_on_this_machine(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--org--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc").mkdir(parents=True)
    options = EngineOptions(("x",), (), env={"HF_HOME": str(tmp_path)}, state_dir=tmp_path)
    assert model_files.find(options, EngineModel("n", "org/name")) == repository / "snapshots" / "abc"
    assert model_files.find(options, EngineModel("n", "org/other")) is None


# -- memory ------------------------------------------------------------------------------------------------------------


class Unmade:
    """No server starts here, so no provider is made."""

    def __call__(self, endpoint: Endpoint) -> Provider:
        raise AssertionError(endpoint.name)


MODEL = EngineModel("large", "/srv/large", memory_gb=18)
OPTIONS = EngineOptions(("x",), (MODEL,))


async def test_too_little_free_memory_refuses_the_start_with_both_figures() -> None:
    async def free(_: EngineOptions) -> float:
        return 12.34

    with pytest.raises(EngineError) as caught:
        await memory.require(OPTIONS, MODEL, free, settle_s=0)
    assert caught.value.message == (
        "large needs 18 GB of GPU memory and 12.3 GB are free. End what uses it, or choose a smaller model."
    )
    assert caught.value.final


async def test_a_job_whose_model_does_not_fit_fails_by_the_documented_sentence_with_both_figures() -> None:
    options = EngineOptions(("x",), (replace(MODEL, memory_gb=10**7),), device="cpu")
    host = EngineHost(Endpoint("engine-a", "engine", engine=options), options, Unmade())
    with pytest.raises(ProviderError) as caught:
        async with host.residency.lease("large"):
            pass
    assert caught.value.message.startswith(
        "Job execution failed: Resource limits exceeded. engine-a: large needs 1e+07 GB of memory and "
    )
    assert caught.value.fatal
    await host.residency.close()


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
    with pytest.raises(EngineError, match="nvidia-smi is not found"):
        await memory.free_gb(replace(OPTIONS, env={"PATH": str(tmp_path)}))


async def test_free_memory_is_summed_over_the_gpus_that_the_engine_sees(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncase "$*" in *--id=0,1*) echo 1000; echo 2000;; *) echo 9; esac\n')
    tool.chmod(0o755)
    options = replace(OPTIONS, env={"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"})
    assert await memory.free_gb(options) == 3000 * 2**20 / 1e9


def test_a_listing_that_is_no_number_is_shown() -> None:
    with pytest.raises(EngineError, match=r"did not tell the free GPU memory: \[N/A\]"):
        memory.free_of_listing("[N/A]\n")


# -- crashes -----------------------------------------------------------------------------------------------------------


def test_a_model_is_given_up_at_its_third_crash_in_a_row_and_may_be_tried_again_later() -> None:
    crashes = Crashes()
    assert [crashes.crashed("a") for _ in range(6)] == [False, False, True, False, False, True]


def test_an_answer_in_between_begins_the_count_anew() -> None:
    crashes = Crashes()
    crashes.crashed("a")
    crashes.crashed("a")
    crashes.answered("a", "item")
    assert not crashes.crashed("a")


def test_each_start_after_a_crash_waits_longer() -> None:
    crashes = Crashes()
    waits = [crashes.wait_s("a")]
    for _ in range(2):
        crashes.crashed("a")
        waits.append(crashes.wait_s("a"))
    assert waits == [0.0, 0.2, 0.8]
    assert crashes.wait_s("b") == 0


def test_an_item_that_was_cut_off_three_times_is_given_up_while_others_go_on() -> None:
    crashes = Crashes()
    for _ in range(2):
        assert not crashes.cut_off("bad")
        assert not crashes.cut_off("neighbour")
        crashes.answered("a", "neighbour")
    assert crashes.cut_off("bad")
    assert not crashes.cut_off("neighbour")
