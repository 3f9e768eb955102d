"""Tips are found in the forms in which small models write lists, and their diversity is measured."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.experiments import candidates
from services.experiments.candidates import MOST_TIPS, Candidates


@pytest.mark.parametrize(
    ("answer", "tips"),
    [
        ('["Walk now.", "Call Ann."]', ("Walk now.", "Call Ann.")),
        ('Sure! Here you are:\n["Walk.", "Call [Ann]."]\nGood luck!', ("Walk.", "Call [Ann].")),
        ('```json\n[\n  "Walk.",\n  "Call."\n]\n```', ("Walk.", "Call.")),
        ('{"tips": [{"title": "A", "tip": "Walk."}, {"Text": "Call."}, 5, null]}', ("Walk.", "Call.")),
        ('<think>[ "no" ]</think>["Walk."]', ("Walk.",)),
        ('I could say ["no"].</think>\n["Walk."]', ("Walk.",)),
        ('["1. Walk.", "**2.** Call."]', ("Walk.", "Call.")),
        ('See [1].\n["Walk.",]', ("Walk.",)),
        ('[["Walk.", "Call."]]', ("Walk.", "Call.")),
        ('["  Walk\\n now. ", "", "  "]', ("Walk now.",)),
    ],
)
def test_lists_of_json(answer: str, tips: tuple[str, ...]) -> None:
    assert candidates.read(answer) == Candidates(tips, "json")


def test_a_list_that_breaks_off_gives_its_whole_tips() -> None:
    assert candidates.read('["Walk.", "Call.", "Wri') == Candidates(("Walk.", "Call."), "json", complete=False)


@pytest.mark.parametrize(
    ("answer", "tips"),
    [
        ("1. Walk.\n2. Call.", ("Walk.", "Call.")),
        ("Tips:\n\n1) **Walk:** now\n\n2) Call.\n\nBye!", ("Walk: now", "Call.")),
        ("**1. Walk**\n**2. Call**", ("Walk", "Call")),
        ("Tip 1: Walk.\nTip 2: Call.", ("Walk.", "Call.")),
        ("- Walk.\n- Call.", ("Walk.", "Call.")),
        ("* Walk.\n• Call.", ("Walk.", "Call.")),
        ('1. "Walk."\n2. “Call.”', ("Walk.", "Call.")),
        ("1. Walk\n   to the park.\n   - Take a coat.\n2. Call.", ("Walk to the park. Take a coat.", "Call.")),
        ("```\n1. Walk.\n2. Call.\n```", ("Walk.", "Call.")),
        ("- Drink 1.5 litres.\n- At 7:30, walk.", ("Drink 1.5 litres.", "At 7:30, walk.")),
    ],
)
def test_lists_of_lines(answer: str, tips: tuple[str, ...]) -> None:
    assert candidates.read(answer) == Candidates(tips, "lines")


@pytest.mark.parametrize("answer", ["", "Walk now.", "[]", "[1, 2]", "{}", "7:30 is early.", "<think>1. Walk"])
def test_answers_without_tips(answer: str) -> None:
    assert candidates.read(answer) == Candidates((), "none")


@pytest.mark.parametrize("answer", ["[" * 300_000, '["' * 100_000, '["a",' * 50_000, "1. " * 100_000, "```\n" * 50_000])
def test_hostile_answers_are_read_at_once(answer: str) -> None:
    assert len(candidates.read(answer).tips) <= MOST_TIPS


def test_a_model_that_repeats_itself_gives_a_limited_number_of_tips() -> None:
    assert len(candidates.read(json.dumps(["Walk."] * 1000)).tips) == MOST_TIPS
    assert len(candidates.read("- Walk.\n" * 1000).tips) == MOST_TIPS


plain = st.text(st.characters(codec="utf-8", categories=["L", "Nd"]), min_size=1, max_size=20)


@given(st.lists(plain.map(lambda word: f"Do {word}"), min_size=1, max_size=8))
def test_written_lists_are_read_back_in_every_form(tips: list[str]) -> None:
    assert candidates.read(json.dumps(tips)).tips == tuple(tips)
    assert candidates.read(json.dumps(tips, ensure_ascii=False, indent=2)).tips == tuple(tips)
    assert candidates.read("\n".join(f"- {tip}" for tip in tips)).tips == tuple(tips)
    assert candidates.read("\n".join(f"{n}. {tip}" for n, tip in enumerate(tips, 1))).tips == tuple(tips)


@given(st.text(max_size=200))
def test_any_text_is_read(answer: str) -> None:
    found = candidates.read(answer)
    assert (found.form == "none") == (not found.tips)
    assert all(tip.strip() for tip in found.tips)


@pytest.mark.parametrize(
    ("tips", "value"),
    [
        (["Walk now", "walk NOW!"], 0),
        (["Walk now", "Call Ann"], 1),
        (["a b", "b c"], 1 - 1 / 3),
        (["a b", "b c", "d"], 1 - (1 / 3 + 0 + 0) / 3),
        (["...", "!"], 0),
        (["...", "a"], 1),
        (["Straße", "STRASSE"], 0),
    ],
)
def test_diversity_is_one_minus_the_mean_similarity_of_pairs(tips: list[str], value: float) -> None:
    assert candidates.diversity(tips) == pytest.approx(value)


def test_one_tip_has_no_diversity() -> None:
    assert candidates.diversity(["Walk."]) is None
    assert candidates.diversity([]) is None


@given(st.lists(st.text(max_size=30), min_size=2, max_size=6))
def test_diversity_is_a_share_and_no_order_counts(tips: list[str]) -> None:
    value = candidates.diversity(tips)
    assert value is not None
    assert -1e-12 <= value <= 1
    assert candidates.diversity(tips[::-1]) == pytest.approx(value)
    assert candidates.diversity([tips[0]] * len(tips)) == pytest.approx(0)
