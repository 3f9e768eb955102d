"""Looks of configurations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.display import palette

keys = st.lists(st.tuples(st.sampled_from(["ollama", "vllm"]), st.text(max_size=6)), unique=True, max_size=16)


@given(keys)
def test_up_to_sixteen_configurations_have_sixteen_looks(known: list[tuple[str, str]]) -> None:
    slots = palette.assign(known)
    assert len(set(slots.values())) == len(known)
    assert slots == palette.assign(reversed(known))


@given(keys, keys)
def test_what_a_page_adds_does_not_change_the_others(known: list[palette.Key], shown: list[palette.Key]) -> None:
    alone, together = palette.assign(known), palette.assign(known, shown)
    assert {key: together[key] for key in known} == alone
