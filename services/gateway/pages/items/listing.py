"""A job's items: filtered, searched, a hundred a page by keyset, each with how its answer was read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services import rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError, TouchstoneError, UnavailableError
from services.gateway import context
from services.gateway.backend import Backend
from services.gateway.pages.display import conversation
from services.gateway.pages.items import conditions
from services.gateway.pages.items.opinions import judged_item, opinions
from services.gateway.pages.items.rows import Row, beside, row_of, rows_of
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.words import judging_rows
from services.words.enums import ITEM_FILTERS, ITEM_ORDERS, VERDICTS
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, results_service_pb2

PAGE_SIZE = 100
MOST_SHOWN = 20_000
"""Characters of a text before "Show all": a page with several long texts stays light."""
_DEFAULTS = (("items", "all"), ("sort", "item"))
AUTOMATIC_PAGES = 10
"""After this many pages more rows come only by click, so that a page does not grow without end."""

FILTERS = {
    "all": "All",
    "failures": "Failures",
    "unparsed": "Unparsed",
    "cut": "Cut",
    "errors": "Errors",
    "different": "Different from baseline",
}
"""The filters with counts, always visible, with their words."""
_SIDES = {"different": "Both", "improved": "Improved", "regressed": "Regressed"}
"""The filters that compare with a baseline."""
_FURTHER = {"right": "correct", "cut": "truncated"}
"""Names in the address of filters that have another one in the API."""
_CHOICES = (*FILTERS, *_SIDES, "right", "refused")
_COUNTS = {"cut": "truncated"}
ORDERS = {"item": "In order of items", "slowest": "Slowest first", "longest": "Most tokens first"}


@dataclass(frozen=True, slots=True)
class Classes:
    """How often each class was read for each reference. `heads` are the columns, "" for items of which nothing was
    read; `lines` are (reference, counts in their order, other texts)."""

    heads: list[str]
    lines: list[tuple[str, list[int], int]]

    @property
    def others(self) -> bool:
        return any(other for *_, other in self.lines)

    @classmethod
    def of(cls, counted: Sequence[results_service_pb2.ClassCount]) -> Classes | None:
        """None without classes."""
        if not counted:
            return None
        names = sorted({one.reference for one in counted})
        found: Counter[tuple[str, str | None]] = Counter()
        for one in counted:
            found[one.reference, one.prediction if one.HasField("prediction") else None] += one.items
        heads = [*names, *([""] if any(found[name, ""] for name in names) else [])]
        return cls(heads, [(name, [found[name, head] for head in heads], found[name, None]) for name in names])


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
    order: str = "item"
    cell: dict[str, str] = field(default_factory=dict)
    """`reference` and `extracted` as exact texts; an empty one means that nothing was read."""
    baseline: str = ""
    chosen_baseline: str = ""
    """The one in the address; without it the configuration's previous run is the baseline."""
    sides: list[tuple[str, str, int]] = field(default_factory=list)
    classes: Classes | None = None
    class_task: str = ""
    """The task that `classes` are of."""
    opened: dict[str, Any] | None = None

    @property
    def choices(self) -> dict[str, str]:
        """All that the address says, and what a form has to send with its own field."""
        chosen = {"items": self.filter, "task": self.task, "q": self.query, "sort": self.order}
        return chosen | {"baseline": self.chosen_baseline} | self.conditions

    def address(self, **changes: str) -> str:
        """The query of this view with some choices changed."""
        chosen = {name: value for name, value in (self.choices | changes).items() if value}
        kept = {name: value for name, value in chosen.items() if (name, value) not in _DEFAULTS}
        cell = self.cell if "task" not in changes else {}
        return urlencode({name: value for name, value in cell.items() if name not in changes} | kept)

    def hidden(self, *own: str) -> list[tuple[str, str]]:
        """What a form with the fields `own` sends with them."""
        kept = [(name, value) for name, value in self.choices.items() if value and name not in own]
        return [*(pair for pair in kept if pair not in _DEFAULTS), *self.cell.items()]

    @property
    def exported(self) -> str:
        """The query with which REST exports these items."""
        filter_ = _FURTHER.get(self.filter, self.filter)
        chosen = {"task": self.task, "filter": filter_, "query": self.query, "baseline": self.baseline}
        cell = {"reference": self.cell.get("reference", ""), "prediction": self.cell.get("extracted", "")}
        if self.filter not in _SIDES:
            chosen["baseline"] = ""
        kept = {name: value for name, value in (chosen | cell | self.conditions).items() if value}
        return urlencode(kept)

    def of_cell(self, reference: str, extracted: str) -> str:
        """The page with the items of one cell of the table of classes."""
        query = urlencode({"task": self.class_task, "reference": reference, "extracted": extracted})
        return f"/jobs/{self.job_id}?{query}#items"

    @property
    def without_cell(self) -> str:
        query = urlencode({name: value for name, value in self.hidden() if name not in self.cell})
        return f"/jobs/{self.job_id}?{query}#items"

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
        return not (self.task or self.query or self.conditions or self.cell)

    @property
    def live(self) -> bool:
        """Whether updates may replace its rows."""
        plain = self.filter == "all" and self.order == "item" and not self.chosen_baseline
        return plain and self.whole and self.pages == 1 and self.opened is None

    @property
    def automatic(self) -> bool:
        return self.pages < AUTOMATIC_PAGES


async def load(request: Request, job: job_pb2.Job, previous: job_pb2.Job | None, *, judged: bool) -> Listing | str:
    """The page of items for the address, with the item that it opens, or the sentence that says why there is none.
    `judged` says whether the job has judges."""
    ctx, caller = context.of(request), context.identity(request)
    try:
        found = await listing(ctx.backend, job, caller, request.query_params, previous)
        opened = request.query_params.get("open", "")
        return replace(found, opened=await _opened(request, job, opened, judged)) if opened else found
    except NotFoundError:
        return "No items are stored yet."
    except TouchstoneError as error:
        return error.message


async def _opened(request: Request, job: job_pb2.Job, key: str, judged: bool) -> dict[str, Any] | None:
    """What the opened item is drawn from; None for a key that no item has."""
    task, _, place = key.rpartition(":")
    item, _, repeat = place.partition(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in (item, repeat or "0")):
        return None
    call = results_service_pb2.GetItemRequest(job_id=job.job_id, task=task, item=int(item), repeat=int(repeat or 0))
    try:
        return await _reading(request, call, judged)
    except NotFoundError:
        return None


async def listing(
    backend: Backend,
    job: job_pb2.Job,
    caller: rpc.Identity,
    query: QueryParams,
    previous: job_pb2.Job | None,
    page_size: int = PAGE_SIZE,
) -> Listing:
    """`previous` is the baseline unless the address names one. Raises what the results service answers."""
    chosen = query.get("items", "all") if query.get("items", "all") in _CHOICES else "all"
    kept = conditions.read(query) if job.spec.HasField("dataset") else {}
    pages = int(query["pages"]) if query.get("pages", "").isdecimal() and len(query["pages"]) < 6 else 1
    named = query.get("baseline", "").strip()
    baseline = jobs.checked_id(named) if named else (previous.job_id if previous else "")
    if chosen in _SIDES and not baseline:
        chosen = "all"
    order = query.get("sort", "item") if query.get("sort", "item") in ORDERS else "item"
    cell = {name: query[name][:512] for name in ("reference", "extracted") if name in query}
    task = query.get("task", "") or (job.plan[0].task if len(job.plan) == 1 else "")
    call = results_service_pb2.ListItemsRequest(
        job_id=job.job_id,
        task=task,
        filter=ITEM_FILTERS[_FURTHER.get(chosen, chosen)],
        query=query.get("q", "").strip()[:200],
        page_size=page_size,
        page_token=query.get("after", ""),
        conditions=conditions.conditions_of(kept, cell),
        baseline_job_id=baseline,
        order=ITEM_ORDERS[order],
        with_classes=bool(task) and not query.get("after") and is_finished(job) and not _judges(job),
    )
    try:
        answer = await backend.ask(backend.results.ListItems, call, caller)
    except (ConflictError, UnavailableError):
        # The items of the run before may be in an archive that does not give them back.
        if named or not baseline:
            raise
        return await listing(backend, job, caller, query, None, page_size)
    counts = {name: getattr(answer, f"count_{_COUNTS.get(name, name)}") for name in (*FILTERS, *_SIDES)}
    return Listing(
        job_id=job.job_id,
        of_rows=job.spec.HasField("dataset"),
        filter=chosen,
        task=query.get("task", ""),
        query=call.query,
        rows=beside(rows_of(answer.items), answer.baselines),
        segments=[(name, word, counts[name]) for name, word in FILTERS.items() if baseline or name != "different"],
        more=answer.next_page_token,
        pages=pages,
        conditions=kept,
        fields=conditions.fields_of(stored.result.metadata for stored in answer.items),
        order=order,
        cell=cell,
        baseline=baseline,
        chosen_baseline=baseline if named else "",
        sides=[(name, word, counts[name]) for name, word in _SIDES.items()] if chosen in _SIDES else [],
        classes=Classes.of(answer.classes),
        class_task=task,
    )


def _judges(job: job_pb2.Job) -> bool:
    """Whether the answers are judgements, which have no classes."""
    return job.spec.dataset.scoring.scorer == "judgement"


async def items(request: Request) -> Response:
    """The items card, or the rows that follow in it."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    previous, _ = await jobs.runs_around(ctx.backend, job, caller)
    found = await listing(ctx.backend, job, caller, request.query_params, previous)
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
    call = results_service_pb2.GetItemRequest(
        job_id=jobs.checked_id(request.path_params["job_id"]),
        task=request.path_params["task"],
        item=request.path_params["item"],
        repeat=repeat_of(request),
    )
    values = await _reading(request, call, judged=True)
    if is_fragment(request):
        return fragment(request, "jobs/_item_detail.html", values)
    return await render(request, "jobs/item.html", "history", values)


async def _reading(request: Request, call: results_service_pb2.GetItemRequest, judged: bool) -> dict[str, Any]:
    """What an opened item is drawn from, with what judges said if the job may have some. Raises what the results
    service answers."""
    ctx, caller = context.of(request), context.identity(request)
    found, said = await asyncio.gather(
        ctx.backend.ask(ctx.backend.results.GetItem, call, caller), opinions(request, call, judged)
    )
    stored = found.item
    dropped = ""
    if not stored.result.prompt:
        result_call = results_service_pb2.GetJobResultRequest(job_id=call.job_id)
        dropped = (await ctx.backend.ask(ctx.backend.results.GetJobResult, result_call, caller)).result.texts_dropped
    dataset_id, may_change, about = await _of_rows(request, stored)
    pictures = await conversation.pictures(ctx.backend, caller, dataset_id, stored.result)
    values = {"row": row_of(stored), "stored": stored, "job_id": call.job_id, "dropped": dropped, "judged": False}
    values |= {"may_change": may_change, "whole": "whole" in request.query_params}
    values |= {"opinions": said, "about": about}
    return values | judging(stored, pictures)


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


async def _of_rows(request: Request, stored: results_service_pb2.StoredItem) -> tuple[str, bool, str]:
    """Of an answer to an uploaded row the dataset, where its messages may have pictures, and whether the caller may
    judge it: the run's owner and admins may. Of a judgement also the address of what it is about."""
    if not stored.result.custom_id:
        return "", False, ""
    ctx, caller = context.of(request), context.identity(request)
    if caller.is_admin and not stored.result.messages and not judging_rows.PLACE.fullmatch(stored.result.custom_id):
        return "", True, ""
    job = await jobs.find(ctx.backend, stored.job_id, caller)
    about = judged_item(job, stored.result.custom_id)
    return job.spec.dataset.dataset_id, jobs.may_change(job, caller), about


def repeat_of(request: Request) -> int:
    """Which of an item's answers the address names, from 0."""
    text = request.query_params.get("repeat", "")
    return int(text) if text.isdecimal() and len(text) < 6 else 0


async def annotate(request: Request) -> Response:
    """Stores a person's verdict: golden, to be fixed, or wrong. The answer is the updated part; without script the
    item's page. Raises what the service answers."""
    ctx, caller = context.of(request), context.identity(request)
    form = await request.form()
    verdict = str(form.get("verdict", ""))
    if verdict not in VERDICTS:
        raise InvalidRequestError("Choose golden, fix or wrong.", "verdict")
    corrected = str(form.get("corrected_answer", "")).replace("\r\n", "\n") if verdict == "fix" else ""
    if verdict == "fix" and not corrected.strip():
        raise InvalidRequestError("Write the corrected answer, then choose Fix.", "corrected_answer")
    job_id, path = jobs.checked_id(request.path_params["job_id"]), request.path_params
    call = results_service_pb2.AnnotateItemRequest(
        job_id=job_id,
        task=path["task"],
        item=path["item"],
        repeat=repeat_of(request),
        verdict=VERDICTS[verdict],
        corrected_answer=corrected,
        note=str(form.get("note", "")).strip() if verdict != "none" else "",
    )
    stored = (await ctx.backend.ask(ctx.backend.results.AnnotateItem, call, caller)).item
    if "hx-request" in request.headers:
        values = {"row": row_of(stored), "stored": stored, "job_id": job_id, "may_change": True, "judged": True}
        return fragment(request, "jobs/_judge.html", values | judging(stored))
    address = f"/jobs/{job_id}/items/{quote(call.task, safe='')}/{call.item}"
    return RedirectResponse(f"{address}?repeat={call.repeat}" if call.repeat else address, 303)
