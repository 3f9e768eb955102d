"""A model that does not fit the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.engine.host import Crashes, EngineHost
from services.evaluator.providers.protocol.provider import Provider, ProviderError
from tests.unit.evaluator.engine.models import MODEL


class Unmade:
    """No server starts here, so no provider is made."""

    def __call__(self, endpoint: Endpoint) -> Provider:
        raise AssertionError(endpoint.name)


async def test_a_job_whose_model_does_not_fit_fails_by_the_documented_sentence_with_both_figures() -> None:
    options = EngineOptions(("x",), (replace(MODEL, memory_gb=10**7),), device="cpu")
    host = EngineHost(Endpoint("engine-a", "engine", engine=options), options, Unmade())
    with pytest.raises(ProviderError) as caught:
        async with host.residency.lease("large"):
            pass
    assert caught.value.message.startswith(
        "Job execution failed: Resource limits exceeded. engine-a: large needs 1e+07 GB of memory; "
    )
    assert caught.value.fatal
    await host.residency.close()


def test_a_model_is_given_up_at_its_third_crash_in_a_row_and_may_be_tried_again_later() -> None:
    crashes = Crashes()
    assert [crashes.crashed("a") for _ in range(6)] == [False, False, True, False, False, True]


def test_an_answer_in_between_begins_the_count_anew() -> None:
    crashes = Crashes()
    crashes.crashed("a")
    crashes.crashed("a")
    crashes.answered("a", "item")
    assert not crashes.crashed("a")


def test_each_start_after_a_crash_waits_longer() -> None:
    crashes = Crashes()
    waits = [crashes.wait_s("a")]
    for _ in range(2):
        crashes.crashed("a")
        waits.append(crashes.wait_s("a"))
    assert waits == [0.0, 0.2, 0.8]
    assert crashes.wait_s("b") == 0


def test_an_item_that_was_cut_off_three_times_is_given_up_while_others_go_on() -> None:
    crashes = Crashes()
    for _ in range(2):
        assert not crashes.cut_off("bad")
        assert not crashes.cut_off("neighbour")
        crashes.answered("a", "neighbour")
    assert crashes.cut_off("bad")
    assert not crashes.cut_off("neighbour")
