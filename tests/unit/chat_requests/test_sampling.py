"""Sampling parameters of rows."""

from __future__ import annotations

import json

from tests.unit.results.uploads import batch_line, jsonl, upload


def test_further_fields_keep_the_order_of_their_names_and_their_digits() -> None:
    fields = '{"response_format":{"b":1.0,"a":[{"z":1,"y":12345678901234567890}],"10":0.1},"user":"u"}'
    for line in ({"prompt": "a", "extra": json.loads(fields)}, batch_line(**json.loads(fields))):
        (row,) = upload(jsonl(line)).rows
        assert row.sampling.extra_json == fields


def test_what_a_row_leaves_out_stays_absent() -> None:
    (row,) = upload(jsonl(batch_line(temperature=None))).rows

    assert not row.HasField("sampling")
    assert not row.stop


def test_most_max_tokens_is_known_only_where_every_row_has_a_bound() -> None:
    bounded = upload(jsonl({"prompt": "a", "max_tokens": 5}, {"prompt": "b", "max_tokens": 9}))
    open_ = upload(jsonl({"prompt": "a", "max_tokens": 5}, {"prompt": "b"}))

    assert bounded.dataset is not None
    assert open_.dataset is not None
    assert (bounded.dataset.most_max_tokens, open_.dataset.most_max_tokens) == (9, 0)
