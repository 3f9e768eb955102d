"""Shards that uploads under way hold."""

from __future__ import annotations

import pytest

from services.results.datasets.garbage_collection import ShardHolds


def test_a_shard_is_held_until_the_last_upload_with_it_ends() -> None:
    holding = ShardHolds()

    def fail() -> None:
        with holding.upload() as held:
            held.hold("a")
            held.hold("b")
            raise ConnectionError

    with holding.upload() as first:
        first.hold("a")
        first.hold("a")
        with pytest.raises(ConnectionError):
            fail()
        assert holding.not_held(["a", "b"]) == ["b"]
    assert holding.not_held(["a", "b"]) == ["a", "b"]
