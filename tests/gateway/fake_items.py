"""Items of the fake results service: lists, rows side by side, estimates."""

from __future__ import annotations

import json

from services import further_fields
from services.errors import ConflictError, NotFoundError
from services.words import chat, refusals
from tests.gateway import fake_data
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, results_service_pb2

MOST = 3000
"""Of each task so many items are there: of the whole of GLUE more than the 10,000 that lists count to, and a sixth of
its 70,000, which take seconds to make."""


def _job(world: World, job_id: str) -> job_pb2.Job:
    if job_id not in world.jobs:
        raise NotFoundError(refusals.not_found("Benchmark job", job_id))
    return world.jobs[job_id]


def items(world: World, job_id: str) -> list[results_service_pb2.StoredItem]:
    job = _job(world, job_id)
    rows = world.rows.get(job.spec.dataset.dataset_id, [])
    stored = []
    for plan, live in zip(job.plan, job.progress.tasks, strict=True):
        for index in range(min(live.items_done, MOST)):
            result = fake_data.item(plan, index)
            if job_id in world.results and world.results[job_id].texts_dropped:
                result.prompt = result.response = result.reasoning = ""
            if job.baseline:
                result.input_tokens = result.output_tokens = 0
                result.input_untold = result.output_untold = True
            if rows:
                result.custom_id, result.metadata = rows[index].custom_id, rows[index].metadata
                result.response += " " + rows[index].messages[0].content
                _converse(result, rows[index])
            one = results_service_pb2.StoredItem(job_id=job_id, task=plan.task, attempt=1, result=result)
            if result.statistics:
                one.score = result.statistics["correct"]
            if held := world.annotations.get((job_id, plan.task, index)):
                one.annotation.CopyFrom(held)
            stored.append(one)
    return stored


def _converse(result: item_result_pb2.ItemResult, row: dataset_pb2.DatasetRow) -> None:
    """Of a row with tools each is called with a script; the messages are told where one has more than a text."""
    result.parameters = row.sampling.extra_json
    for number, tool in enumerate(chat.offered(further_fields.fields(row.sampling))):
        result.tool_calls.add(
            id=f"call_{number}", name=tool["name"], arguments=json.dumps({"b": 1.0, "query": fake_data.HOSTILE})
        )
        result.logprobs.add(token=" <b>", logprob=-0.25, top=[{"token": "\n", "logprob": -1.5}])
    if not all(map(chat.is_plain, row.messages)):
        result.messages = json.dumps([chat.written(message, pictures=False) for message in row.messages])


def estimate(world: World, request: results_service_pb2.EstimateRunRequest) -> results_service_pb2.EstimateRunResponse:
    stored = items(world, request.job_id)
    if len(stored) < 5:
        raise ConflictError(f"Job {request.job_id} has {len(stored)} answers; an estimate takes 5.")
    figure = results_service_pb2.Estimate(value=10, low=8, high=13)
    return results_service_pb2.EstimateRunResponse(
        items=request.items or 100,
        pilot_items=len(stored),
        input_tokens=figure,
        output_tokens=figure,
        duration_s=figure,
    )
