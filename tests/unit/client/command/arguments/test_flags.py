"""Sentences of the services name the arguments of the command line."""

from __future__ import annotations

import pytest

from touchstone_client import InvalidError
from touchstone_client.command.arguments.flags import in_flags, refusal


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("spec.suite.limit must be positive.", "--limit must be positive."),
        ("num_predict must be between 1 and 9.", "--max-tokens must be between 1 and 9."),
        ("config.num_ctx is too small.", "--context-length is too small."),
        ("The limit of a task is 5.", "The limit of a task is 5."),
        ("custom_id in every row is a text.", "custom_id in every row is a text."),
    ],
)
def test_a_field_is_named_as_its_argument_where_it_cannot_be_a_word(sentence: str, told: str) -> None:
    assert in_flags(sentence) == told


def test_the_field_at_fault_is_known_though_it_is_a_word() -> None:
    error = InvalidError.of("limit must be positive.")
    assert refusal(error) == "limit must be positive."
    error.field = "spec.suite.limit"
    assert refusal(error) == "--limit must be positive."
