"""Reasoning is left out of an answer."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.prose.cleaning import strip_reasoning


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("<think>a <think> b</think>c", "c"),
        ("a</think>b", "b"),
        ("a<think>b", "a"),
        ("<Thinking>a</Thinking>b<reasoning>c</reasoning>d", "bd"),
        ("[THINK]a[/THINK]b", "b"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "b"),
        ("I think so", "I think so"),
    ],
)
def test_reasoning_is_stripped(text: str, left: str) -> None:
    assert strip_reasoning(text) == left
