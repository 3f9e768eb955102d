"""Models on the disk."""

from __future__ import annotations

from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions

MODEL = EngineModel("large", "/srv/large", memory_gb=18)
OPTIONS = EngineOptions(("x",), (MODEL,))
