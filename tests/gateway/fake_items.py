"""Items of the fake results service: lists, annotations, rows side by side, estimates, batch output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from services import rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.words import sentences
from services.words.enums import ITEM_FILTERS
from tests.gateway import fake_data, fake_pages
from tests.gateway.fake_world import World
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2

CUT_BYTES = 2048
_COUNTED = (
    *("all", "failures", "unparsed", "errors", "truncated", "refused"),
    *("different", "regressed", "improved"),
)


def _job(world: World, job_id: str) -> job_pb2.Job:
    if job_id not in world.jobs:
        raise NotFoundError(sentences.not_found("Benchmark job", job_id))
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
            if rows:
                result.custom_id, result.metadata = rows[index].custom_id, rows[index].metadata
                result.response += " " + rows[index].messages[0].content
            one = results_service_pb2.StoredItem(job_id=job_id, task=plan.task, attempt=1, result=result)
            if result.statistics:
                one.score = result.statistics["correct"]
            if held := world.annotations.get((job_id, plan.task, index)):
                one.annotation.CopyFrom(held)
            stored.append(one)
    return stored


def chosen(
    world: World, request: results_service_pb2.ListItemsRequest
) -> dict[int, list[results_service_pb2.StoredItem]]:
    """By filter, the items that satisfy the conditions. Raises NotFoundError for an unknown job, task or baseline."""
    job = _job(world, request.job_id)
    if request.task and request.task not in [plan.task for plan in job.plan]:
        tasks = ", ".join(plan.task for plan in job.plan)
        raise NotFoundError(f"Job {job.job_id} has no task {request.task!r}. Its tasks: {tasks}.")
    found = [stored for stored in items(world, request.job_id) if _fits(request, stored)]
    others = {_place(stored): stored for stored in _beside(world, request)}
    pairs = [(stored, others[_place(stored)]) for stored in found if _place(stored) in others]
    listing, outcomes = results_service_pb2.ListItemsRequest, item_result_pb2

    def ended(outcome: item_result_pb2.Outcome) -> list[results_service_pb2.StoredItem]:
        return [stored for stored in found if stored.result.outcome == outcome]

    return {
        listing.FILTER_UNSPECIFIED: found,
        listing.FILTER_FAILURES: [stored for stored in found if not _right(stored)],
        listing.FILTER_CORRECT: [stored for stored in found if _right(stored)],
        listing.FILTER_UNPARSED: ended(outcomes.OUTCOME_UNPARSED),
        listing.FILTER_ERRORS: ended(outcomes.OUTCOME_INFRASTRUCTURE_ERROR),
        listing.FILTER_REFUSED: ended(outcomes.OUTCOME_REFUSED),
        listing.FILTER_TRUNCATED: ended(outcomes.OUTCOME_OUTPUT_TRUNCATED) + ended(outcomes.OUTCOME_INPUT_TRUNCATED),
        listing.FILTER_FINAL: [s for s in found if s.result.outcome != outcomes.OUTCOME_INFRASTRUCTURE_ERROR],
        listing.FILTER_DIFFERENT: [a for a, b in pairs if a.result.prediction != b.result.prediction],
        listing.FILTER_REGRESSED: [a for a, b in pairs if _right(b) and not _right(a)],
        listing.FILTER_IMPROVED: [a for a, b in pairs if _right(a) and not _right(b)],
    }


def _beside(world: World, request: results_service_pb2.ListItemsRequest) -> list[results_service_pb2.StoredItem]:
    return items(world, request.baseline_job_id) if request.baseline_job_id else []


def _place(stored: results_service_pb2.StoredItem) -> tuple[str, int, int]:
    return stored.task, stored.result.item, stored.result.repeat


def _right(stored: results_service_pb2.StoredItem) -> bool:
    return stored.result.statistics.get("correct") == 1


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


def list_items(world: World, request: results_service_pb2.ListItemsRequest) -> results_service_pb2.ListItemsResponse:
    kinds = chosen(world, request)
    found = kinds[request.filter]
    others = {_place(stored): stored for stored in _beside(world, request)}
    nothing = results_service_pb2.StoredItem()
    page, token = fake_pages.page(request, found, 100)
    return results_service_pb2.ListItemsResponse(
        items=[_cut(stored) for stored in page],
        baselines=[others.get(_place(stored), nothing) for stored in page] if request.baseline_job_id else [],
        next_page_token=token,
        total_size=len(found),
        **{f"count_{name}": len(kinds[ITEM_FILTERS[name]]) for name in _COUNTED},
    )


def _cut(stored: results_service_pb2.StoredItem) -> results_service_pb2.StoredItem:
    text = stored.result.response.encode()
    if len(text) > CUT_BYTES:
        stored.result.response = text[: CUT_BYTES - 3].decode(errors="ignore") + "…"
    return stored


def _item(
    world: World, request: results_service_pb2.GetItemRequest | results_service_pb2.AnnotateItemRequest
) -> results_service_pb2.StoredItem:
    for stored in items(world, request.job_id):
        if _place(stored) == (request.task, request.item, request.repeat):
            return stored
    raise NotFoundError(f"Job {request.job_id} has no stored item {request.item} of task {request.task!r}.")


def get_item(world: World, request: results_service_pb2.GetItemRequest) -> results_service_pb2.GetItemResponse:
    return results_service_pb2.GetItemResponse(item=_item(world, request))


def annotate(
    world: World, request: results_service_pb2.AnnotateItemRequest
) -> results_service_pb2.AnnotateItemResponse:
    _item(world, request)
    caller = rpc.identity()
    if not caller.is_admin and caller.user != world.jobs[request.job_id].owner:
        raise PermissionDeniedError("Only the owner or an admin may annotate this run.")
    held = results_service_pb2.Annotation(
        verdict=request.verdict, corrected_answer=request.corrected_answer, note=request.note, author=caller.user
    )
    held.annotated_at.GetCurrentTime()
    world.annotations[request.job_id, request.task, request.item] = held
    stored = _item(world, request)
    return results_service_pb2.AnnotateItemResponse(item=stored)


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
    for job_id, stored in zip(request.job_ids, found, strict=True):
        answer.runs.add(
            job=world.jobs[job_id],
            rows=len(stored),
            mean_score=0.5,
            score_ci95_low=0.25,
            score_ci95_high=0.75,
            mean_latency_ms=12.5,
        )
    places, answer.next_page_token = fake_pages.page(request, range(len(longest)), 50)
    for place in places:
        row = answer.rows.add(task=longest[place].task, item=place, agree=True)
        row.items.extend(one[place] if place < len(one) else results_service_pb2.StoredItem() for one in found)
        for _ in request.job_ids if request.with_diffs else ():
            row.diffs.add().parts.add(kind=results_service_pb2.WordDiff.Part.KIND_ADDED, text="more ")
    return answer


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


def batch_output(
    world: World, request: results_service_pb2.ExportRequest
) -> Iterator[results_service_pb2.ExportResponse]:
    """Lines in pieces that are cut anywhere."""
    data = b""
    for stored in chosen(world, request.items)[request.items.filter]:
        result = stored.result
        failed = result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
        message = {"role": "assistant", "content": result.response}
        line = {
            "id": f"batch_req_{result.item}",
            "custom_id": result.custom_id,
            "response": None
            if failed
            else {
                "status_code": 200,
                "request_id": "r",
                "body": {
                    "id": f"chatcmpl-{result.item}",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": None,
                },
            },
            "error": {"code": "infrastructure_error", "message": result.error} if failed else None,
        }
        data += json.dumps(line).encode() + b"\n"
    for start in range(0, len(data), 499):
        yield results_service_pb2.ExportResponse(data=data[start : start + 499])
