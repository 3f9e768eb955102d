"""Answers of two to four runs to the same rows: the list of rows, one row side by side, and what a person prefers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import InvalidRequestError, TouchstoneError
from services.gateway import context
from services.gateway.pages.compare.page import compared
from services.gateway.pages.compare.view import View as CompareView
from services.gateway.pages.display import conversation, palette
from services.gateway.pages.display.formatting import MISSING
from services.gateway.pages.display.work_words import dataset_of, work_of
from services.gateway.pages.items import conditions
from services.gateway.pages.items.rows import Row, row_of
from services.gateway.pages.items.side_by_side_view import LETTERS, View, row_key
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.gateway.reads.questions import LEAST_JOBS, ask_side_by_side
from services.words.enums import DIFF_PARTS, PREFERENCES, SIDE_BY_SIDE_FILTERS
from touchstone.v1 import results_service_pb2

PAGE_SIZE = 50
PROMPT = "P"
MOST_SHOWN = 4_000
"""Characters of a text before "Show all"."""
_TAGS = {"removed": "del", "added": "ins"}


@dataclass(frozen=True, slots=True)
class Text:
    """`parts` are (element, text), the element empty for plain text. `length` is that of the whole text, `rest` the
    address that shows it, empty where all is shown."""

    parts: list[tuple[str, str]]
    length: int = 0
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run's answer to the opened row. `choice` is what a judge sends to prefer it."""

    letter: str
    run: results_service_pb2.SideBySideRun
    slot: int | None
    choice: str
    row: Row | None = None
    text: Text | None = None
    preferred: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """The row that is read. `hidden`: which answer is whose is not shown. `held` is the judge's choice in a word."""

    row: results_service_pb2.SideBySideRow
    cells: list[Cell]
    prompt: list[tuple[str, Text]]
    metadata: dict[str, str]
    hidden: bool
    held: str
    may_judge: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of the list. `columns` has its metadata by name, `flag` names the first answer that was cut, failed or
    could not be read; `told` is what the judge prefers."""

    key: str
    row: results_service_pb2.SideBySideRow
    question: str
    columns: dict[str, str]
    flag: str
    told: str


async def side_by_side(request: Request) -> Response:
    """The page. 400 for other than two to four runs, or runs without a common row."""
    ctx, caller = context.of(request), context.identity(request)
    view = View.of(request)
    if request.query_params.getlist("jobs") != [",".join(view.job_ids)]:
        # Ticked boxes come one by one.
        return RedirectResponse(view.address(), 303)
    found = await _found(request, view)
    keys = [(run.job.spec.endpoint, run.job.spec.model) for run in found.runs]
    slots = palette.assign(await ctx.catalogue.model_keys(), keys)
    one = found.runs[0].job
    runs = [(letter, run, slots.get(key)) for letter, run, key in zip(LETTERS, found.runs, keys, strict=False)]
    listed = [_listed(view, row) for row in found.rows]
    values: dict[str, Any] = {
        "view": view,
        "runs": runs,
        "title": work_of(one),
        "dataset_id": dataset_of(one),
        "listed": listed,
        "opened": await _opened(request, view, found, runs),
        "opened_key": row_key(found.opened),
        "fields": conditions.fields_of(stored.result.metadata for row in found.rows for stored in row.items),
        "counts": _counts(found),
        "found": found,
        "may_be_judged": len(found.runs) == 2 and all(jobs.can_judge(run.job, "") for run in found.runs),
        "around": {
            name: view.address(filter=view.filter, only=view.only, row=view.place_key(getattr(found, name)))
            if found.HasField(name)
            else ""
            for name in ("previous", "next", "previous_page", "next_page")
        },
        "user": caller.user,
        "own_scores": await jobs.scores_of(ctx.backend, view.job_ids, caller) if view.narrowed else {},
    }
    if is_fragment(request):
        part = fragment(request, "side_by_side/_view.html", values)
        # The form's own address would name every empty field.
        part.headers["HX-Push-Url"] = view.here()
        return part
    return await render(request, "side_by_side/index.html", "datasets", values)


async def verdict(request: Request) -> Response:
    """What stands above the rows: of two runs the first against the second, of more each against the first. 204 where
    they cannot be compared."""
    view = View.of(request)
    baseline = view.job_ids[1 if len(view.job_ids) == LEAST_JOBS else 0]
    try:
        values = await compared(request, CompareView(view.job_ids, baseline=baseline))
    except TouchstoneError:
        return Response(status_code=204)
    return fragment(request, "side_by_side/_verdict.html", values)


async def prefer(request: Request) -> Response:
    """Keeps what the caller prefers of the opened row, and shows the next one; in blind mode the same row, with the
    names. Raises what the service answers."""
    ctx, caller = context.of(request), context.identity(request)
    view = View.of(request)
    said = str((await request.form()).get("choice", ""))
    found = await _found(request, view)
    if not found.HasField("opened") or row_key(found.opened) != view.row:
        raise InvalidRequestError("The row is not among those listed. Open it again, then judge it.", "row")
    row, order = found.opened, view.order_of(found.opened)
    choice = said if said in PREFERENCES and said != "better" else ""
    if said.isdecimal() and said.isascii() and 0 < int(said[:3]) <= len(order):
        choice = "better"
    if not choice:
        raise InvalidRequestError("Choose one of the answers, a tie, or all bad.", "choice")
    first = row.items[0]
    call = results_service_pb2.JudgeRowRequest(
        job_ids=view.job_ids,
        task=first.task,
        item=first.result.item,
        repeat=first.result.repeat,
        choice=PREFERENCES[choice],
        preferred_job_id=view.job_ids[order[int(said) - 1]] if choice == "better" else "",
        blind=view.blind and not row.HasField("preference"),
    )
    await ctx.backend.ask(ctx.backend.results.JudgeRow, call, caller)
    moves_on = not view.blind and choice != "none" and found.HasField("next")
    return RedirectResponse(view.here(row=view.place_key(found.next)) if moves_on else view.here(), 303)


async def _found(request: Request, view: View) -> results_service_pb2.ListSideBySideResponse:
    ctx, caller = context.of(request), context.identity(request)
    order_field, descending = conditions.ordered_by(view.sort)
    call = results_service_pb2.ListSideBySideRequest(
        job_ids=view.job_ids,
        task=view.task,
        filter=SIDE_BY_SIDE_FILTERS[view.filter],
        only_job_id=view.job_ids[LETTERS.index(view.only)] if view.only else "",
        query=view.query,
        conditions=conditions.conditions_of(view.conditions),
        page_size=PAGE_SIZE,
        with_diffs=view.diff,
        judge=caller.user,
        order_field=order_field,
        descending=descending,
        open=view.place,
        whole_opened=True,
    )
    return await ask_side_by_side(ctx.backend, call, caller)


def _listed(view: View, row: results_service_pb2.SideBySideRow) -> Listed:
    rows = [row_of(stored) if stored.job_id else None for stored in row.items]
    first = next(one for one in rows if one is not None)
    held = conditions.members(first.result.metadata)
    flags = (
        f"{letter} {one.verdict}" for letter, one in zip(LETTERS, rows, strict=False) if one is not None and one.tone
    )
    told = PREFERENCES.of(row.preference.choice) if row.HasField("preference") else ""
    if told == "better":
        told = LETTERS[view.job_ids.index(row.preference.preferred_job_id)]
    return Listed(
        key=row_key(row),
        row=row,
        question=first.question,
        columns={name: held.get(name, MISSING) for name in conditions.columns(view.field, view.sort)},
        flag=next(iter(flags), ""),
        told={"tie": "tie", "all_bad": "all bad"}.get(told, told),
    )


async def _opened(
    request: Request,
    view: View,
    found: results_service_pb2.ListSideBySideResponse,
    runs: Sequence[tuple[str, results_service_pb2.SideBySideRun, int | None]],
) -> Opened | None:
    """None where no row matches."""
    if not found.HasField("opened"):
        return None
    ctx, caller = context.of(request), context.identity(request)
    row = found.opened
    stored = await asyncio.gather(*(_whole(request, one, known=row.whole) for one in row.items))
    may_judge = all(one is not None and row_of(one).tone != "bad" for one in stored)
    held = PREFERENCES.of(row.preference.choice) if row.HasField("preference") else ""
    hidden = view.blind and may_judge and not held
    cells = []
    for number, place in enumerate(view.order_of(row), 1):
        letter, run, slot = runs[place]
        one = stored[place]
        preferred = held == "better" and row.preference.preferred_job_id == run.job.job_id
        if one is None:
            cells.append(Cell(letter, run, slot, str(number)))
            continue
        answered = row_of(one)
        diff = row.diffs[place].parts if place < len(row.diffs) and not hidden else []
        parts = [(_TAGS.get(DIFF_PARTS.of(part.kind), ""), part.text) for part in diff] or [("", answered.said)]
        name = str(number) if hidden else letter
        cells.append(Cell(letter, run, slot, str(number), answered, _text(view, parts, name), preferred))
    first = next(one for one in stored if one is not None)
    pictures = await conversation.pictures(ctx.backend, caller, dataset_of(found.runs[0].job), first.result)
    turns = conversation.turns(first.result.messages, pictures)
    said = [(turn.role, turn.text) for turn in turns] or [("Prompt", first.result.prompt)]
    prompt = [(role, _text(view, [("", text)], PROMPT)) for role, text in said]
    return Opened(row, cells, prompt, conditions.members(first.result.metadata), hidden, held, may_judge)


async def _whole(
    request: Request, excerpt: results_service_pb2.StoredItem, *, known: bool
) -> results_service_pb2.StoredItem | None:
    """The answer with whole texts, which may be `known`, or None if the run has no answer to the row."""
    if not excerpt.job_id:
        return None
    if known:
        return excerpt
    ctx, caller = context.of(request), context.identity(request)
    result = excerpt.result
    call = results_service_pb2.GetItemRequest(
        job_id=excerpt.job_id, task=excerpt.task, item=result.item, repeat=result.repeat
    )
    return (await ctx.backend.ask(ctx.backend.results.GetItem, call, caller)).item


def _text(view: View, parts: Sequence[tuple[str, str]], name: str) -> Text:
    """The beginning, or all of it where the address says so."""
    length = sum(len(text) for _, text in parts)
    if length <= MOST_SHOWN or name in view.whole:
        return Text(list(parts), length)
    shown, left = [], MOST_SHOWN
    for element, text in parts:
        if left > 0:
            shown.append((element, text[:left]))
        left -= len(text)
    return Text(shown, length, view.here(whole=view.whole + name))


def _counts(found: results_service_pb2.ListSideBySideResponse) -> list[tuple[str, str, int]]:
    return [
        ("all", "All", found.count_all),
        ("disagree", "Differ", found.count_all - found.count_agree),
        ("agree", "Agree", found.count_agree),
        ("all_right", "All right", found.count_all_right),
        ("all_wrong", "All wrong", found.count_all_wrong),
        ("judged", "Judged", found.count_judged),
        ("not_judged", "Not judged", found.count_not_judged),
    ]
