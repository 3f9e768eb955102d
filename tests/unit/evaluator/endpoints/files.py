"""Files of endpoints."""

from __future__ import annotations

from pathlib import Path

from services.evaluator.endpoints.endpoint import Endpoint, load


def read(folder: Path, text: str, **environ: str) -> tuple[Endpoint, ...]:
    file = folder / "endpoints.toml"
    file.write_text(text)
    return load(file, environ)
