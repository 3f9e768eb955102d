"""A job's items: filtered, searched, a hundred a page by keyset, each with how its answer was read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from services import rpc
from services.errors import NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.backend import Backend
from services.gateway.pages.display import conversation
from services.gateway.pages.items import conditions
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.words import chat, phrases
from services.words.enums import ITEM_FILTERS, VERDICTS
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2

PAGE_SIZE = 100
AUTOMATIC_PAGES = 10
"""After this many pages more rows come only by click, so that a page does not grow without end."""

FILTERS = ("all", "failures", "unparsed", "errors")
"""The filters with counts, always visible."""
_FURTHER = {"right": "correct", "cut": "truncated", "refused": "refused"}
"""The filters that a count elsewhere on the page links to."""


@dataclass(frozen=True, slots=True)
class Row:
    """An item in the table. `verdict` is right, wrong, or another outcome; `tone` its colour. `score` is a graded
    answer's score; `judged` a person's verdict."""

    task: str
    result: item_result_pb2.ItemResult
    question: str
    verdict: str
    tone: str
    score: float | None = None
    judged: str = ""

    @property
    def said(self) -> str:
        """The answer as one text."""
        return chat.answer_text(self.result.response, self.result.tool_calls)


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of items, and the links of the other choices. `conditions` are those of an uploaded dataset's rows."""

    job_id: str
    of_rows: bool
    filter: str
    task: str
    query: str
    rows: list[Row]
    segments: list[tuple[str, str, int]]
    more: str
    pages: int
    conditions: dict[str, str]
    fields: list[str]

    def address(self, **changes: str) -> str:
        """The query of this view with some choices changed."""
        chosen = {"items": self.filter, "task": self.task, "q": self.query} | self.conditions | changes
        return urlencode({name: value for name, value in chosen.items() if value and (name, value) != ("items", "all")})

    @property
    def cleared(self) -> str:
        """The page without conditions."""
        query = self.address(**dict.fromkeys(self.conditions, ""))
        return f"/jobs/{self.job_id}" + (f"?{query}" if query else "") + "#items"

    @property
    def referenced(self) -> bool:
        """Whether some row here has a reference; suites' items always have."""
        return not self.of_rows or any(row.result.reference for row in self.rows)

    @property
    def whole(self) -> bool:
        """Whether its counts are those of the whole job."""
        return not self.task and not self.query and not self.conditions

    @property
    def automatic(self) -> bool:
        return self.pages < AUTOMATIC_PAGES


async def load(request: Request, job: job_pb2.Job) -> Listing | str:
    """The page of items for the address, or the sentence that says why there is none."""
    try:
        return await listing(context.of(request).backend, job, context.identity(request), request.query_params)
    except NotFoundError:
        return "No items are stored yet."
    except TouchstoneError as error:
        return error.message


async def listing(
    backend: Backend, job: job_pb2.Job, caller: rpc.Identity, query: QueryParams, page_size: int = PAGE_SIZE
) -> Listing:
    """Raises what the results service answers."""
    chosen = query.get("items", "all") if query.get("items", "all") in (*FILTERS, *_FURTHER) else "all"
    kept = conditions.read(query) if job.spec.HasField("dataset") else {}
    pages = int(query["pages"]) if query.get("pages", "").isdecimal() and len(query["pages"]) < 6 else 1
    call = results_service_pb2.ListItemsRequest(
        job_id=job.job_id,
        task=query.get("task", ""),
        filter=ITEM_FILTERS[_FURTHER.get(chosen, chosen)],
        query=query.get("q", "").strip()[:200],
        page_size=page_size,
        page_token=query.get("after", ""),
        conditions=conditions.conditions_of(kept),
    )
    answer = await backend.ask(backend.results.ListItems, call, caller)
    counts = (answer.count_all, answer.count_failures, answer.count_unparsed, answer.count_errors)
    words = ("All", "Failures", "Unparsed", "Errors")
    return Listing(
        job_id=job.job_id,
        of_rows=job.spec.HasField("dataset"),
        filter=chosen,
        task=call.task,
        query=call.query,
        rows=_rows(answer.items),
        segments=list(zip(FILTERS, words, counts, strict=True)),
        more=answer.next_page_token,
        pages=pages,
        conditions=kept,
        fields=conditions.fields_of(stored.result.metadata for stored in answer.items),
    )


async def items(request: Request) -> Response:
    """The items card, or the rows that follow in it."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    found = await listing(ctx.backend, job, caller, request.query_params)
    values = {"listing": found, "items_problem": ""}
    if request.query_params.get("after"):
        return fragment(request, "jobs/_item_rows.html", values)
    card = fragment(request, "jobs/_items.html", values)
    if "metadata_field" in request.query_params:
        # Sent by the form of conditions, whose own address would be that of this part.
        query = found.address()
        card.headers["HX-Push-Url"] = f"/jobs/{job.job_id}" + (f"?{query}" if query else "")
    return card


async def item(request: Request) -> Response:
    """One item with whole texts: a row that opens under the item's own, or a page."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    call = results_service_pb2.GetItemRequest(
        job_id=job_id, task=request.path_params["task"], item=request.path_params["item"], repeat=repeat_of(request)
    )
    stored = (await ctx.backend.ask(ctx.backend.results.GetItem, call, caller)).item
    dropped = ""
    if not stored.result.prompt:
        result_call = results_service_pb2.GetJobResultRequest(job_id=job_id)
        dropped = (await ctx.backend.ask(ctx.backend.results.GetJobResult, result_call, caller)).result.texts_dropped
    dataset_id, may_change = await _of_rows(request, stored)
    pictures = await conversation.pictures(ctx.backend, caller, dataset_id, stored.result)
    values = {"row": row_of(stored), "stored": stored, "job_id": job_id, "dropped": dropped, "judged": False}
    values |= {"may_change": may_change} | judging(stored, pictures)
    if is_fragment(request):
        return fragment(request, "jobs/_item_detail.html", values)
    return await render(request, "jobs/item.html", "history", values)


def judging(stored: results_service_pb2.StoredItem, pictures: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The row's part of the opened item: its messages and metadata, and the answer to correct."""
    tools, sent = conversation.offered(stored.result.parameters)
    return {
        "turns": conversation.turns(stored.result.messages, pictures),
        "calls": conversation.called(stored.result.tool_calls),
        "tools": tools,
        "sent": sent,
        "tokens": conversation.tokens(stored.result.logprobs),
        "metadata": conditions.members(stored.result.metadata),
        "corrected": stored.annotation.corrected_answer or stored.result.response,
    }


def _asked(result: item_result_pb2.ItemResult) -> str:
    """What distinguishes the item from others: the last message, or the prompt."""
    turns = conversation.turns(result.messages)
    return turns[-1].text if turns else result.prompt


async def _of_rows(request: Request, stored: results_service_pb2.StoredItem) -> tuple[str, bool]:
    """Of an answer to an uploaded row the dataset, where its messages may have pictures, and whether the caller may
    judge it: the run's owner and admins may."""
    if not stored.result.custom_id:
        return "", False
    ctx, caller = context.of(request), context.identity(request)
    if caller.is_admin and not stored.result.messages:
        return "", True
    job = await jobs.find(ctx.backend, stored.job_id, caller)
    return job.spec.dataset.dataset_id, caller.is_admin or jobs.may_change(job, caller)


def repeat_of(request: Request) -> int:
    """Which of an item's answers the address names, from 0."""
    text = request.query_params.get("repeat", "")
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def item_address(job_id: str, row: Row) -> str:
    repeat = f"?repeat={row.result.repeat}" if row.result.repeat else ""
    return f"/jobs/{job_id}/items/{quote(row.task, safe='')}/{row.result.item}{repeat}"


def _rows(stored: Sequence[results_service_pb2.StoredItem]) -> list[Row]:
    """Rows whose question leaves out the common beginning of the task's prompts, so that they differ visibly."""
    prompts: dict[str, list[str]] = {}
    for one in stored:
        prompts.setdefault(one.task, []).append(_flat(_asked(one.result)))
    skip = {task: _shared(texts) for task, texts in prompts.items()}
    return [_row(one, _flat(_asked(one.result))[skip[one.task] :]) for one in stored]


def row_of(stored: results_service_pb2.StoredItem) -> Row:
    """The item alone, its question from the beginning."""
    return _row(stored, _asked(stored.result))


def _row(stored: results_service_pb2.StoredItem, question: str) -> Row:
    result = stored.result
    verdict = phrases.UNREAD.get(result.outcome, "")
    failed = result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    tone = "bad" if failed else "warn" if verdict else ""
    if failed and "timed out" in result.error:
        verdict = "timed out"
    if not verdict:
        correct = result.statistics.get("correct")
        verdict = "answered" if correct is None else "right" if correct == 1 else "wrong"
    graded = stored.HasField("score") and stored.score not in (0, 1)
    return Row(
        task=stored.task,
        result=result,
        question=question.strip()[:160] or _flat(result.prompt)[:160],
        verdict=verdict,
        tone=tone,
        score=stored.score if graded or (stored.HasField("score") and "correct" not in result.statistics) else None,
        judged=VERDICTS.of(stored.annotation.verdict) if stored.annotation.verdict else "",
    )


def _flat(text: str) -> str:
    return " ".join(re.sub(r"^(user|system): ", "", text.strip()).split())


def _shared(texts: Sequence[str]) -> int:
    """Length of the common beginning, up to a word's start; 0 when that would leave a row empty."""
    if len(texts) < 2:
        return 0
    first, last = min(texts), max(texts)
    # All texts between two sorted texts share their common beginning.
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    length = first.rfind(" ", 0, length) + 1
    return length if all(len(text) > length for text in texts) else 0
