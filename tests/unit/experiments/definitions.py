"""A small definition, which tests change."""

from __future__ import annotations

from typing import Any


def small(**changes: Any) -> dict[str, Any]:
    """Two models, one prompt, two scenarios. A change to None leaves a field out."""
    fields = {
        "name": "greetings",
        "models": ["ollama/qwen2.5:0.5b", {"provider": "ollama", "model": "gemma3:1b"}],
        "prompts": [{"id": "plain", "template": "Greet {{who}} in {{n_tips}} ways."}],
        "scenarios": [{"who": "Ada"}, {"id": "second", "who": "Bo"}],
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}
