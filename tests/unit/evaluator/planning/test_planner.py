"""How many items a unit has, and which models are too large."""

from __future__ import annotations

import pytest

from services.evaluator.planning.planner import listed_model, unit_size
from services.evaluator.providers.protocol.provider import ProviderError
from touchstone.v1 import endpoint_pb2, job_pb2


@pytest.mark.parametrize(
    ("concurrency", "per_minute", "size"),
    [
        (8, 0, 32),
        (48, 0, 48),
        (64, 0, 64),
        (1000, 0, 64),
        (8, 600, 4),
        (64, 60_000, 64),
        (8, 60, 1),
        (8, 1, 1),
    ],
)
def test_a_unit_grows_with_the_calls_at_once_and_is_small_where_calls_are_limited(
    concurrency: int, per_minute: int, size: int
) -> None:
    endpoint = endpoint_pb2.Endpoint(concurrency=concurrency, requests_per_minute=per_minute)
    assert unit_size(32, endpoint) == size


def _endpoint(size_b: float, *, is_listed: bool = True) -> endpoint_pb2.Endpoint:
    made = endpoint_pb2.Endpoint(endpoint="ollama", models=[endpoint_pb2.Model(model="m:9b", parameters_b=size_b)])
    if is_listed:
        made.refreshed_at.GetCurrentTime()
    return made


def test_an_attempt_is_held_to_the_limit_of_its_experiment_by_the_size_of_this_moment() -> None:
    spec = job_pb2.JobSpec(endpoint="ollama", model="m:9b", max_model_b=4)
    assert listed_model(spec, _endpoint(3.9)).parameters_b == 3.9
    # The name now stands for a larger model than when the job was accepted.
    for endpoint in (_endpoint(5), _endpoint(0), _endpoint(0, is_listed=False)):
        with pytest.raises(ProviderError, match=r"experiment takes at most 4\. Run .* higher max_model_b; 0 means any"):
            listed_model(spec, endpoint)
    spec.judging.job_id = "judged"
    with pytest.raises(ProviderError, match="higher max_judge_b"):
        listed_model(spec, _endpoint(5))
    spec.max_model_b = 0
    assert listed_model(spec, _endpoint(5)).parameters_b == 5
