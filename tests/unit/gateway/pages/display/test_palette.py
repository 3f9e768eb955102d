"""Looks of configurations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.display import palette

keys = st.lists(st.tuples(st.sampled_from(["ollama", "vllm"]), st.text(max_size=6)), unique=True, max_size=16)


@given(keys)
def test_up_to_sixteen_configurations_have_sixteen_looks(known: list[palette.Key]) -> None:
    slots = palette.assign(known)
    assert len(set(slots.values())) == len(known)
    assert palette.assign((), known) == palette.assign((), reversed(known)), "the order on a page does not matter"


@given(keys)
def test_a_further_model_changes_no_colour(known: list[palette.Key]) -> None:
    slots = palette.assign(known)
    assert all(palette.assign(known[:few]).items() <= slots.items() for few in range(len(known)))


@given(keys, keys)
def test_a_colour_comes_again_only_when_all_eight_are_taken(known: list[palette.Key], shown: list[palette.Key]) -> None:
    slots = palette.assign(known, shown)
    colours = {slot % palette.COLOURS for slot in slots.values()}
    assert len(colours) == min(palette.COLOURS, len(slots))
    assert all(slot < palette.COLOURS for slot in slots.values()) or len(slots) > palette.COLOURS


@given(keys, keys)
def test_what_a_page_adds_does_not_change_the_others(known: list[palette.Key], shown: list[palette.Key]) -> None:
    alone, together = palette.assign(known), palette.assign(known, shown)
    assert {key: together[key] for key in known} == alone
