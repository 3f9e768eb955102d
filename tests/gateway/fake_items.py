"""Items of the fake results service: lists, rows side by side, estimates."""

from __future__ import annotations

import json
from typing import Any

from services import further_fields
from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.words import chat, refusals
from tests.gateway import fake_data, fake_pages
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, results_service_pb2


def _job(world: World, job_id: str) -> job_pb2.Job:
    if job_id not in world.jobs:
        raise NotFoundError(refusals.not_found("Benchmark job", job_id))
    return world.jobs[job_id]


def items(world: World, job_id: str) -> list[results_service_pb2.StoredItem]:
    job = _job(world, job_id)
    rows = world.rows.get(job.spec.dataset.dataset_id, [])
    stored = []
    for plan, live in zip(job.plan, job.progress.tasks, strict=True):
        for index in range(live.items_done):
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


def _fits(request: results_service_pb2.ListItemsRequest, stored: results_service_pb2.StoredItem) -> bool:
    asked, result = request.conditions, stored.result
    texts = (result.prompt, result.response, result.prediction, result.reference, result.error, result.custom_id)
    metadata: dict[str, Any] = json.loads(result.metadata or "{}")
    values = [metadata.get(asked.metadata_field)] if asked.metadata_field else list(metadata.values())
    return (
        request.task in ("", stored.task)
        and any(request.query.lower() in text.lower() for text in (*texts, *map(str, metadata.values())))
        and (not asked.metadata_value or any(asked.metadata_value.lower() in str(value).lower() for value in values))
        and asked.custom_id in ("", result.custom_id)
        and (not asked.HasField("length_low") or len(result.response) >= asked.length_low)
        and (not asked.HasField("length_high") or len(result.response) <= asked.length_high)
        and (not asked.HasField("score_low") or (stored.HasField("score") and stored.score >= asked.score_low))
        and (not asked.HasField("score_high") or (stored.HasField("score") and stored.score <= asked.score_high))
        and (not asked.verdicts or stored.annotation.verdict in asked.verdicts)
    )


def side_by_side(
    world: World, request: results_service_pb2.ListSideBySideRequest
) -> results_service_pb2.ListSideBySideResponse:
    one = results_service_pb2.ListItemsRequest(task=request.task, query=request.query, conditions=request.conditions)
    kinds = {_job(world, job_id).spec.WhichOneof("work") for job_id in request.job_ids}
    found = [[s for s in items(world, job_id) if _fits(one, s)] for job_id in request.job_ids]
    longest = max(found, key=len)
    if len(kinds) > 1 or not any(items(world, job_id) for job_id in request.job_ids):
        raise InvalidRequestError(
            "The jobs have no rows in common. Name jobs over one dataset, over datasets with the same custom ids, "
            "or of one suite. A job that has just started has no rows yet.",
            "job_ids",
        )
    answer = results_service_pb2.ListSideBySideResponse(count_all=len(longest), total_size=len(longest))
    right = [[one.result.statistics.get("correct", 0) for one in row] for row in zip(*found, strict=False)]
    chosen = [place for place, row in enumerate(right) if _is_chosen(request, row)]
    if request.filter:
        answer.total_size = len(chosen)
    answer.count_all_right, answer.count_all_wrong = sum(map(all, right)), sum(not any(row) for row in right)
    for number, (job_id, stored) in enumerate(zip(request.job_ids, found, strict=True)):
        answer.runs.add(
            only_right=sum(row[number] == sum(row) == 1 for row in right),
            job=world.jobs[job_id],
            rows=len(stored),
            mean_score=0.5,
            score_ci95_low=0.25,
            score_ci95_high=0.75,
            mean_latency_ms=12.5,
        )
    places, answer.next_page_token = fake_pages.page(request, chosen if request.filter else range(len(longest)), 50)
    for place in places:
        row = answer.rows.add(task=longest[place].task, item=place, agree=True)
        row.items.extend(one[place] if place < len(one) else results_service_pb2.StoredItem() for one in found)
        for _ in request.job_ids if request.with_diffs else ():
            row.diffs.add().parts.add(kind=results_service_pb2.WordDiff.Part.KIND_ADDED, text="more ")
    return answer


def _is_chosen(request: results_service_pb2.ListSideBySideRequest, right: list[float]) -> bool:
    """By who is right: filters by agreement choose every row."""
    asked = results_service_pb2.ListSideBySideRequest
    if request.filter == asked.FILTER_ALL_RIGHT:
        return all(right)
    if request.filter == asked.FILTER_ALL_WRONG:
        return not any(right)
    if request.filter == asked.FILTER_ONLY_RIGHT:
        return sum(right) == 1 == right[list(request.job_ids).index(request.only_job_id)]
    return True


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
