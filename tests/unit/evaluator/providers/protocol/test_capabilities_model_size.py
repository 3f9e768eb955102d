"""A model's size is read from its name."""

from __future__ import annotations

import pytest

from services.evaluator.providers.protocol.capabilities import parameters_b


@pytest.mark.parametrize(
    ("text", "billions"),
    [
        ("7.6B", 7.6),
        ("qwen2.5:7b", 7),
        ("qwen2.5-0.5b-instruct", 0.5),
        ("mixtral:8x7b", 56),
        ("gemma3:270m", 0.27),
        ("allenai/OLMo-2-1124-7B-Instruct", 7),
        ("gpt-4o", 0),
        ("mistral:latest", 0),
        ("phi3b5", 0),
    ],
)
def test_a_models_size_is_read_from_its_name(text: str, billions: float) -> None:
    assert parameters_b(text) == pytest.approx(billions)
