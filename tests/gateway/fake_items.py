"""Items of the fake results service: lists, annotations, rows side by side, estimates, batch output."""

from __future__ import annotations

import json
from collections.abc import Iterator

from services import rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from tests.gateway import fake_data
from tests.gateway.fake_world import World, start_of
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2

CUT_BYTES = 2048


def _job(world: World, job_id: str) -> job_pb2.Job:
    if job_id not in world.jobs:
        raise NotFoundError(f"Job {job_id} was never heard of.")
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


def list_items(world: World, request: results_service_pb2.ListItemsRequest) -> results_service_pb2.ListItemsResponse:
    listing = results_service_pb2.ListItemsRequest
    chosen = [
        stored
        for stored in items(world, request.job_id)
        if request.task in ("", stored.task)
        and request.query.lower() in (stored.result.prompt + stored.result.response).lower()
        and request.conditions.metadata_value.lower() in stored.result.metadata.lower()
    ]
    kinds = {
        listing.FILTER_UNSPECIFIED: chosen,
        listing.FILTER_FAILURES: [s for s in chosen if s.result.statistics["correct"] != 1],
        listing.FILTER_UNPARSED: [s for s in chosen if s.result.outcome == item_result_pb2.OUTCOME_UNPARSED],
        listing.FILTER_ERRORS: [s for s in chosen if s.result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR],
    }
    found = kinds.get(request.filter, [])
    beside = items(world, request.baseline_job_id) if request.baseline_job_id else []
    others = {(s.task, s.result.item): s for s in beside}
    nothing = results_service_pb2.StoredItem()
    first, size = start_of(request.page_token), request.page_size or 100
    page = found[first : first + size]
    return results_service_pb2.ListItemsResponse(
        items=[_cut(stored) for stored in page],
        baselines=[others.get((s.task, s.result.item), nothing) for s in page] if request.baseline_job_id else [],
        next_page_token=str(first + size) if first + size < len(found) else "",
        total_size=len(found),
        count_all=len(kinds[listing.FILTER_UNSPECIFIED]),
        count_failures=len(kinds[listing.FILTER_FAILURES]),
        count_unparsed=len(kinds[listing.FILTER_UNPARSED]),
        count_errors=len(kinds[listing.FILTER_ERRORS]),
    )


def _cut(stored: results_service_pb2.StoredItem) -> results_service_pb2.StoredItem:
    text = stored.result.response.encode()
    if len(text) > CUT_BYTES:
        stored.result.response = text[: CUT_BYTES - 3].decode(errors="ignore") + "…"
    return stored


def _item(world: World, job_id: str, task: str, item: int) -> results_service_pb2.StoredItem:
    for stored in items(world, job_id):
        if (stored.task, stored.result.item) == (task, item):
            return stored
    raise NotFoundError(f"Item {item} of {task} is not stored.")


def get_item(world: World, request: results_service_pb2.GetItemRequest) -> results_service_pb2.GetItemResponse:
    return results_service_pb2.GetItemResponse(item=_item(world, request.job_id, request.task, request.item))


def annotate(
    world: World, request: results_service_pb2.AnnotateItemRequest
) -> results_service_pb2.AnnotateItemResponse:
    _item(world, request.job_id, request.task, request.item)
    caller = rpc.identity()
    if not caller.is_admin and caller.user != world.jobs[request.job_id].owner:
        raise PermissionDeniedError("Only the owner or an admin may annotate this run.")
    held = results_service_pb2.Annotation(
        verdict=request.verdict, corrected_answer=request.corrected_answer, note=request.note, author=caller.user
    )
    held.annotated_at.GetCurrentTime()
    world.annotations[request.job_id, request.task, request.item] = held
    stored = _item(world, request.job_id, request.task, request.item)
    return results_service_pb2.AnnotateItemResponse(item=stored)


def side_by_side(
    world: World, request: results_service_pb2.ListSideBySideRequest
) -> results_service_pb2.ListSideBySideResponse:
    asked = request.conditions.metadata_value.lower()
    found = [[s for s in items(world, job_id) if asked in s.result.metadata.lower()] for job_id in request.job_ids]
    longest = max(found, key=len)
    if not longest and not asked:
        raise InvalidRequestError("The jobs have no row in common.", "job_ids")
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
    first, size = start_of(request.page_token), request.page_size or 50
    answer.next_page_token = str(first + size) if first + size < len(longest) else ""
    for place in range(first, min(first + size, len(longest))):
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
    for stored in items(world, request.items.job_id):
        result = stored.result
        failed = result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
        message = {"role": "assistant", "content": result.response}
        line = {
            "id": f"batch_req_{result.item}",
            "custom_id": result.custom_id,
            "response": None
            if failed
            else {"status_code": 200, "request_id": "r", "body": {"choices": [{"index": 0, "message": message}]}},
            "error": {"code": "infrastructure_error", "message": result.error} if failed else None,
        }
        data += json.dumps(line).encode() + b"\n"
    for start in range(0, len(data), 97):
        yield results_service_pb2.ExportResponse(data=data[start : start + 97])
