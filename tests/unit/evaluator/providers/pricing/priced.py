"""Models with prices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from services.evaluator.endpoints.endpoint import Endpoint

OFFICIAL = Endpoint("openai", "openai", "https://api.openai.com/v1")
LISTED = "gpt-4.1-mini"
OWN: Mapping[str, float] = MappingProxyType({"input": 9.0, "output": 99.0})
