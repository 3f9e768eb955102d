"""Where a model is, and jobs of several models."""

from __future__ import annotations

from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, Fakes, job
from touchstone.v1 import endpoint_pb2, scheduler_service_pb2
from touchstone_client import AsyncClient, Client, InvalidError, NotFoundError, Scoring


def fleet(fakes: Fakes) -> None:
    """Two endpoints: `both` stands at each of them."""
    endpoints = [
        endpoint_pb2.Endpoint(endpoint="left", kind="vllm"),
        endpoint_pb2.Endpoint(endpoint="right", kind="ollama"),
    ]
    listed = {"left": ["both", "a@b"], "right": ["both", "one"]}
    fakes.answers["ListEndpoints"] = scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints)
    fakes.answers["ListModels"] = lambda request: scheduler_service_pb2.ListModelsResponse(
        models=[endpoint_pb2.Model(model=name) for name in listed[request.endpoint]]
    )
    fakes.answers["CreateJobs"] = lambda request: scheduler_service_pb2.CreateJobsResponse(
        jobs=[job(model=spec.model) for spec in request.specs]
    )


@pytest.mark.parametrize(
    ("words", "endpoint", "targets"),
    [
        (["one"], "", [("one", "right")]),
        (["both@left", "both@ollama"], "", [("both", "left"), ("both", "right")]),
        (["a@b"], "", [("a@b", "left")]),
        (["both", "one@right"], "left", [("both", "left"), ("one", "right")]),
        (["not-listed@right"], "", [("not-listed", "right")]),
    ],
)
def test_a_model_is_found_where_it_is(fakes: Fakes, words: list[str], endpoint: str, targets: list[Any]) -> None:
    fleet(fakes)
    with Client() as client:
        assert client.targets(words, endpoint) == targets


@pytest.mark.parametrize(
    ("word", "kind", "said"),
    [
        ("both", InvalidError, "left, right"),
        ("none", NotFoundError, "none"),
        ("one@right", InvalidError, "one at right is named twice"),
    ],
)
def test_a_model_that_is_nowhere_or_everywhere_must_be_placed(
    fakes: Fakes, word: str, kind: type[Exception], said: str
) -> None:
    fleet(fakes)
    with Client() as client, pytest.raises(kind, match=said):
        client.run_dataset(DATASET, ["one", word])
    assert fakes.specs() == []


async def test_several_models_are_a_job_each(fakes: Fakes) -> None:
    fleet(fakes)
    async with AsyncClient() as client:
        for _ in range(2):
            jobs = await client.run_dataset(
                DATASET,
                ["one", "both@left"],
                limit=50,
                scoring=Scoring(scorer="contains"),
                labels={"ticket": "T-1"},
                budget_usd=2.5,
                request_id="once",
            )
    assert [made.spec.model for made in jobs] == ["one", "both"]
    asked, again = fakes.requests("CreateJobs")
    assert asked == again
    assert asked.request_id == "once"
    first, second = asked.specs
    work = first.dataset
    assert (work.dataset_id, work.limit, work.scoring.scorer) == (DATASET, 50, "contains")
    assert (dict(first.labels), first.budget_usd) == ({"ticket": "T-1"}, 2.5)
    assert (second.endpoint, second.model) == ("left", "both")


async def test_where_one_of_several_is_refused_both_clients_have_queued_none(fakes: Fakes) -> None:
    fleet(fakes)
    fakes.answers["CreateJobs"] = errors.InvalidRequestError(
        "both@left: spec.sampling.max_tokens must be between 1 and 1,000,000."
    )
    with Client() as client, pytest.raises(InvalidError, match="both@left"):
        client.run_dataset(DATASET, ["one", "both@left"])
    async with AsyncClient() as client:
        with pytest.raises(InvalidError, match="both@left"):
            await client.run_dataset(DATASET, ["one", "both@left"])
    assert [len(request.specs) for request in fakes.requests("CreateJobs")] == [2, 2]
    assert fakes.requests("CreateJob") == []
