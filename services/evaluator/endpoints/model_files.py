"""What a model's files show without loading it: size, parameters, context, and a digest for receipts.

The digest is a SHA-256 that covers, for every file in the order of their names: name and size; the whole of a file up
to 1 MiB (configuration, tokenizer, chat template, index); for larger safetensors, the header, which names every tensor
with type and shape, and 4 KiB at the beginning, the middle and the end of each tensor; for other large files, the first
MiB and 4 KiB at 1,024 evenly spread places. It reads some megabytes of any model, which takes a second. Training
changes nearly every number of the tensors that it touches, so another training gives another digest; a deliberate
change in other places would not. Hence its name, "sampled-sha256".
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions

_WHOLE_BYTES = 2**20
_PIECE_BYTES = 4096
_PIECES = 1024
_MOST_HEADER_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Zero and empty where the files do not say. `weights` is the number format, such as "BF16"."""

    digest: str = ""
    disk_bytes: int = 0
    parameters_b: float = 0.0
    context_length: int = 0
    weights: str = ""


def find(options: EngineOptions, model: EngineModel) -> Path | None:
    """The model's folder or file: where the engine would find the path, else in the Hub's cache on this machine."""
    local = (options.directory or options.state_dir) / model.path
    if local.exists():
        return local
    home = Path(options.env.get("HOME", "/"))
    hub = Path(options.env.get("HF_HOME") or home / ".cache" / "huggingface") / "hub"
    repository = Path(options.env.get("HF_HUB_CACHE") or hub) / f"models--{model.path.replace('/', '--')}"
    try:
        snapshot = repository / "snapshots" / (repository / "refs" / "main").read_text().strip()
    except OSError:
        return None
    return snapshot if snapshot.is_dir() else None


def look(place: Path) -> ModelFiles:
    """Blocking; call it in a thread. Raises OSError."""
    files = _files(place)
    whole = hashlib.sha256()
    headers: list[dict[str, Any]] = []
    for name, path in files:
        size = path.stat().st_size
        whole.update(f"{name}\0{size}\0".encode())
        with path.open("rb") as file:
            header = _header(file, size) if path.suffix == ".safetensors" else None
            if header is not None:
                headers.append(header[1])
            for start, length in _places(size, header):
                file.seek(start)
                whole.update(file.read(length))
    tensors = [entry for header in headers for name, entry in header.items() if name != "__metadata__"]
    counts: dict[str, int] = {}
    for entry in tensors:
        counts[str(entry["dtype"])] = counts.get(str(entry["dtype"]), 0) + math.prod(entry["shape"])
    return ModelFiles(
        digest=f"sampled-sha256:{whole.hexdigest()}",
        disk_bytes=sum(path.stat().st_size for _, path in files),
        # Packed formats hold several parameters in a number; shapes do not give their count.
        parameters_b=0.0 if counts.keys() & {"I32", "U8", "I8"} else round(sum(counts.values()) / 1e9, 6),
        context_length=_context_length(place),
        weights=max(counts, key=lambda dtype: counts[dtype], default=""),
    )


def stamp(place: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the files: if it is unchanged, so are they."""
    return tuple((name, path.stat().st_size, path.stat().st_mtime_ns) for name, path in _files(place))


def _files(place: Path) -> list[tuple[str, Path]]:
    if place.is_file():
        return [(place.name, place)]
    return sorted(
        (str(path.relative_to(place)), path)
        for path in place.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(place).parts)
    )


def _header(file: BinaryIO, size: int) -> tuple[int, dict[str, Any]] | None:
    """Where a safetensors file's tensors begin, and what its header says; None for any other file.

    Format: https://github.com/huggingface/safetensors#format
    """
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, _MOST_HEADER_BYTES):
        return None
    try:
        header = json.loads(file.read(length))
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                math.prod(entry["shape"]), str(entry["dtype"]), begin + end
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return 8 + length, header


def _places(size: int, header: tuple[int, dict[str, Any]] | None) -> Iterator[tuple[int, int]]:
    """(start, length) of what is read of a file."""
    if size <= _WHOLE_BYTES:
        yield 0, size
    elif header is not None:
        data, tensors = header
        yield 0, data
        for name in sorted(tensors.keys() - {"__metadata__"}):
            begin, end = (data + offset for offset in tensors[name]["data_offsets"])
            for start in sorted({begin, (begin + end) // 2, max(begin, end - _PIECE_BYTES)}):
                yield start, min(_PIECE_BYTES, end - start)
    else:
        yield 0, _WHOLE_BYTES
        for piece in range(_PIECES):
            yield _WHOLE_BYTES + (size - _WHOLE_BYTES) * piece // _PIECES, _PIECE_BYTES


def _context_length(place: Path) -> int:
    """`max_position_embeddings` of a Transformers configuration, which may be in its text part."""
    try:
        config = json.loads((place / "config.json").read_text())
    except (OSError, ValueError):
        return 0
    for part in (config, config.get("text_config")) if isinstance(config, dict) else ():
        length = part.get("max_position_embeddings") if isinstance(part, dict) else None
        if isinstance(length, int) and 0 < length < 2**31:
            return length
    return 0
