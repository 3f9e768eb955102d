"""What keeps a run from ranking."""

from __future__ import annotations

import json

from services.results.scores.ranking import redrawn_reason
from tests.unit.results.builders import CUT, ERROR, UNPARSED, job, plan
from touchstone.v1 import item_result_pb2


def redrawn(temperature: float, then: int, now: int, *outcomes: item_result_pb2.Outcome) -> str:
    source, again = job("s", plan("t", 4)), job("j", plan("t", 4))
    source.spec.sampling.max_tokens, again.spec.sampling.max_tokens = then, now
    again.spec.reuse.rerun.extend(outcomes)
    again.receipt.parameters = json.dumps({"temperature": temperature, "max_tokens": now})
    return redrawn_reason(again, source)


def test_answers_that_were_drawn_again_until_they_please_do_not_rank() -> None:
    assert "without a higher token limit" in redrawn(0, 64, 64, UNPARSED)
    assert "temperature" in redrawn(0.9, 64, 256, CUT)
    assert redrawn(0, 64, 256, CUT, UNPARSED) == "", "a cut greedy answer is the beginning of the longer one"
    assert redrawn(0.9, 64, 64, ERROR) == "", "a failed call is no draw"
