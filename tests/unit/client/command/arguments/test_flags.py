"""Sentences of the services name the arguments of the command line."""

from __future__ import annotations

import re

import pytest

from services.words.job_options import ALL
from services.words.sampling import PARAMETERS
from services.words.scorers import OPTIONS
from tests.unit.test_structure import ROOT
from touchstone_client import InvalidError
from touchstone_client.command.arguments.flags import in_flags, refusal


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("spec.suite.limit must be positive.", "--limit must be positive."),
        ("num_predict must be between 1 and 9.", "--max-tokens must be between 1 and 9."),
        ("config.num_ctx is too small.", "--context-length is too small."),
        ("spec.judging.repeats must be between 1 and 10.", "--repeats must be between 1 and 10."),
        ("The limit of a task is 5.", "The limit of a task is 5."),
        ("custom_id in every row is a text.", "custom_id in every row is a text."),
        ("spec.sampling is not complete.", "the sampling is not complete."),
        ("dataset.scoring is not complete.", "the scoring is not complete."),
        ("spec.labels.team is too long.", "team in --label is too long."),
        ("sampling.extra_json.logprobs is not allowed.", "logprobs in --custom-config is not allowed."),
        ("sampling.extra_json is not valid JSON.", "--custom-config is not valid JSON."),
    ],
)
def test_a_field_is_named_as_its_argument_where_it_cannot_be_a_word(sentence: str, told: str) -> None:
    assert in_flags(sentence) == told


def test_the_field_at_fault_is_known_though_it_is_a_word() -> None:
    error = InvalidError.of("limit must be positive.")
    assert refusal(error) == "limit must be positive."
    error.field = "spec.suite.limit"
    assert refusal(error) == "--limit must be positive."


def test_sentences_name_no_argument_that_there_is_not() -> None:
    there = set(re.findall(r" (--[\w-]+)", (ROOT / "tests/unit/surface.txt").read_text()))
    named = {name: in_flags(f"spec.{name} is wrong.").split()[0] for name in (*ALL, *OPTIONS, *PARAMETERS)}

    assert len(named) > 20
    assert {name: flag for name, flag in named.items() if flag.startswith("--") and flag not in there} == {}
