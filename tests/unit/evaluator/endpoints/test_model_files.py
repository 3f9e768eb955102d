"""What a model's files tell, when memory suffices, and how crashes add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.evaluator.endpoints import model_files
from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions

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
