"""Looks of configurations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.display import charts

keys = st.lists(st.tuples(st.sampled_from(["ollama", "vllm"]), st.text(max_size=6)), unique=True, max_size=16)


@given(keys)
def test_up_to_sixteen_configurations_have_sixteen_looks(known: list[tuple[str, str]]) -> None:
    slots = charts.assign(known)
    assert len(set(slots.values())) == len(known)
    assert slots == charts.assign(reversed(known))


@given(keys, keys)
def test_what_a_page_adds_does_not_change_the_others(known: list[charts.Key], shown: list[charts.Key]) -> None:
    alone, together = charts.assign(known), charts.assign(known, shown)
    assert {key: together[key] for key in known} == alone
