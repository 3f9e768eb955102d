"""What the comparison's page says of the noise of whole runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway import fake_comparison
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_compare import done
from touchstone.v1 import comparison_pb2, noise_pb2


async def test_flips_and_the_total_interval_are_on_the_page(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = fake_comparison.compare

    def measured(world: Any, request: comparison_pb2.CompareRequest) -> comparison_pb2.CompareResponse:
        found = compare(world, request)
        flips = noise_pb2.Flips(share=0.021, low=0.014, high=0.031)
        found.runs[0].again.CopyFrom(comparison_pb2.RunsAgain(runs=3, flips=flips, floor=0.0062))
        for one in found.differences:
            one.total_low, one.total_high = one.low - 0.5, one.high + 0.5
        return found

    monkeypatch.setattr(fake_comparison, "compare", measured)
    jobs = ",".join(done(gateway, model).job_id for model in ("a", "b"))
    page = (await gateway.client.get(f"/compare?jobs={jobs}")).text
    assert "With the noise of whole runs, the 95&nbsp;% interval is" in page
    assert "2.1 %" in page
    assert "1.4 to 3.1" in page
    assert "0.6 points" in page
    assert "With one run, noise is not known" in page
