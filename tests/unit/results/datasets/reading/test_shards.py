"""Shards of rows."""

from __future__ import annotations

import json

from services.results.datasets.reading.shards import MOST_ROWS
from tests.unit.results.uploads import jsonl, upload


def test_shards_hold_a_thousand_rows_and_depend_on_the_content_alone() -> None:
    lines = [json.dumps({"prompt": f"q{i}", "stop": "x", "min_p": 0.5, "top_p": 1}).encode() for i in range(2500)]
    one = upload(b"\n".join(lines))
    other = upload(b"\r\n\r\n".join(lines) + b"\r\n", name="other.txt")

    assert [shard.rows for shard in one.shards] == [MOST_ROWS, MOST_ROWS, 500]
    assert [shard.digest for shard in one.shards] == [shard.digest for shard in other.shards]
    assert one.dataset is not None
    assert other.dataset is not None
    assert one.dataset.digest == other.dataset.digest
    assert one.dataset.digest != upload(b"\n".join(lines[:-1])).dataset.digest  # type: ignore[union-attr]


def test_shards_of_long_rows_stay_below_four_megabytes() -> None:
    made = upload(jsonl(*({"prompt": f"{i}" * 700_000} for i in range(9))))

    assert [shard.rows for shard in made.shards] == [5, 4]
