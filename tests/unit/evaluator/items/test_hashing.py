"""Hashes of items."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from services.evaluator.items.hashing import hashes, text_hash, texts


def test_a_hash_is_of_the_prefix_the_columns_and_the_last_text() -> None:
    columns = [texts(pa.array(["a", "ü"])), texts(pa.array([1, 2]))]
    expected = [
        hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
        for parts in (("task", "1", "a", "1", "x"), ("task", "1", "ü", "2", "y"))
    ]
    assert hashes(["task", "1"], columns, ["x", "y"]) == expected


def test_texts_do_not_run_into_each_other() -> None:
    one = hashes(["t"], [texts(pa.array(["ab"])), texts(pa.array(["c"]))], [""])
    other = hashes(["t"], [texts(pa.array(["a"])), texts(pa.array(["bc"]))], [""])
    assert one != other


def test_white_space_around_a_text_does_not_count_and_lists_are_joined() -> None:
    assert texts(pa.array([" a\n"])).to_pylist() == ["a"]
    assert texts(pa.array([[1, 2], [3]])).to_pylist() == ["1\x1e2", "3"]
    assert texts(pa.array([{"x": "a", "y": 1}])).to_pylist() == ["a\x1e1"]
    assert texts(pa.array([1, None])).to_pylist() == ["1", ""]


def test_a_texts_hash_is_the_beginning_of_its_sha_256() -> None:
    assert text_hash("ü") == hashlib.sha256("ü".encode()).hexdigest()[:16]
