"""Texts are sent as they can be."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.client.importing.imports import answers
from tests.unit.client.logs import generated, lm_eval
from touchstone_client.importing import reading


def test_odd_texts_are_sent_as_they_can_be(tmp_path: Path) -> None:
    line = generated(0, {"t": "\x00\u2028"}, "a\x00b", "\ud800 yes\u2028\x00")
    file = lm_eval(tmp_path, "rte", [json.dumps(line)])
    (answer,) = answers(reading.read([file]))
    assert (answer.prompt, answer.response) == ("a\x00b", "? yes\u2028\x00")


def test_an_answer_too_long_to_be_scored_is_an_error_and_nothing_is_cut_from_it(tmp_path: Path) -> None:
    file = lm_eval(tmp_path, "rte", [generated(0, {"t": "x" * 200_000}, "p" * 200_000, "a" * 300_000)])
    (answer,) = answers(reading.read([file]))
    assert (answer.response, answer.row, len(answer.prompt)) == ("", "", 128 * 1024)
    assert "300,000 bytes" in answer.error
