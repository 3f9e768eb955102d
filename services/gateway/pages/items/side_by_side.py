"""Answers of two to four runs to the same rows, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.pages.display import palette
from services.gateway.pages.display.work_words import dataset_of, work_of
from services.gateway.pages.items import conditions
from services.gateway.pages.items.rows import Row, row_of
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.gateway.reads.questions import LEAST_JOBS, MOST_JOBS, OF_ONE_JOB, ask_side_by_side
from services.words.enums import DIFF_PARTS, SIDE_BY_SIDE_FILTERS
from touchstone.v1 import results_service_pb2

PAGE_SIZE = 25
LETTERS = "ABCD"
_TAGS = {"removed": "del", "added": "ins"}


@dataclass(frozen=True, slots=True)
class View:
    """What the address says. `only` is the letter of the run that `only_right` and `only_wrong` are about."""

    job_ids: tuple[str, ...]
    filter: str
    only: str
    task: str
    query: str
    diff: bool
    conditions: dict[str, str]

    def address(self, **changes: str) -> str:
        """The page with some choices changed; a filter brings its own letter, or none."""
        asked = {
            "filter": self.filter,
            "only": self.only,
            "task": self.task,
            "q": self.query,
            "diff": "" if self.diff else "0",
        }
        asked |= self.conditions
        if "filter" in changes:
            asked["only"] = ""
        asked |= changes
        kept = {n: v for n, v in asked.items() if v and (n, v) != ("filter", "all")}
        return f"/side-by-side?jobs={','.join(self.job_ids)}" + (f"&{urlencode(kept)}" if kept else "")

    @property
    def cleared(self) -> str:
        """The page without conditions."""
        kept = {"filter": self.filter, "only": self.only}
        return self.address(**kept, **dict.fromkeys(self.conditions, ""))


@dataclass(frozen=True, slots=True)
class Cell:
    """One run's answer: `parts` are (element, text), the element empty for plain text."""

    row: Row
    stored: results_service_pb2.StoredItem
    parts: list[tuple[str, str]]


async def side_by_side(request: Request) -> Response:
    """The page, or its following rows. 400 for other than two to four runs, or runs without a common row."""
    ctx, caller = context.of(request), context.identity(request)
    view = _view(request)
    if request.query_params.getlist("jobs") != [",".join(view.job_ids)]:
        # Ticked boxes come one by one.
        return RedirectResponse(view.address(), 303)
    call = results_service_pb2.ListSideBySideRequest(
        job_ids=view.job_ids,
        task=view.task,
        filter=SIDE_BY_SIDE_FILTERS[view.filter],
        only_job_id=view.job_ids[LETTERS.index(view.only)] if view.only else "",
        query=view.query,
        conditions=conditions.conditions_of(view.conditions),
        page_size=PAGE_SIZE,
        page_token=request.query_params.get("after", ""),
        with_diffs=view.diff,
    )
    found = await ask_side_by_side(ctx.backend, call, caller)
    keys = [(run.job.spec.endpoint, run.job.spec.model) for run in found.runs]
    slots = palette.assign(await ctx.catalogue.model_keys(), keys)
    one = found.runs[0].job
    values: dict[str, Any] = {
        "view": view,
        "runs": [(letter, run, slots.get(key)) for letter, run, key in zip(LETTERS, found.runs, keys, strict=False)],
        "title": work_of(one),
        "dataset_id": dataset_of(one),
        "rows": [(row, _cells(row)) for row in found.rows],
        "fields": conditions.fields_of(stored.result.metadata for row in found.rows for stored in row.items),
        "tasks_differ": len({row.task for row in found.rows}) > 1,
        "counts": _counts(found),
        "more": view.address(filter=view.filter, only=view.only, after=found.next_page_token)
        if found.next_page_token
        else "",
    }
    if is_fragment(request) and call.page_token:
        return fragment(request, "side_by_side/_rows.html", values)
    if is_fragment(request):
        part = fragment(request, "side_by_side/_view.html", values)
        # The form's own address would name every empty field.
        part.headers["HX-Push-Url"] = view.address(filter=view.filter, only=view.only)
        return part
    return await render(request, "side_by_side/index.html", "datasets", values)


def _view(request: Request) -> View:
    """Unknown choices fall back to the defaults. Raises InvalidRequestError for another number of runs."""
    query = request.query_params
    named = [name.strip() for text in query.getlist("jobs") for name in text.split(",") if name.strip()]
    job_ids = tuple(dict.fromkeys(jobs.checked_id(name) for name in named))
    if not LEAST_JOBS <= len(job_ids) <= MOST_JOBS:
        raise InvalidRequestError(
            f"Select {LEAST_JOBS} to {MOST_JOBS} runs on the dataset's page to compare them. Selected: {len(job_ids)}.",
            "jobs",
        )
    chosen = query.get("filter", "") if query.get("filter", "") in SIDE_BY_SIDE_FILTERS else "all"
    only = query.get("only", "") if query.get("only", "") in tuple(LETTERS[: len(job_ids)]) else ""
    if (chosen in OF_ONE_JOB) != bool(only):
        chosen, only = ("all" if chosen in OF_ONE_JOB else chosen), ""
    diff = "1" in query.getlist("diff") or "diff" not in query
    task, text = query.get("task", "").strip()[:200], query.get("q", "").strip()[:200]
    return View(job_ids, chosen, only, task, text, diff, conditions.read(query))


def _counts(found: results_service_pb2.ListSideBySideResponse) -> list[tuple[str, str, int]]:
    return [
        ("all", "All", found.count_all),
        ("disagree", "Disagree", found.count_all - found.count_agree),
        ("agree", "Agree", found.count_agree),
        ("all_right", "All right", found.count_all_right),
        ("all_wrong", "All wrong", found.count_all_wrong),
    ]


def _cells(row: results_service_pb2.SideBySideRow) -> list[Cell | None]:
    """One for each run; None where it has no answer. The first run's text is what the others differ from."""
    cells: list[Cell | None] = []
    for place, stored in enumerate(row.items):
        if not stored.job_id:
            cells.append(None)
            continue
        diff = row.diffs[place].parts if place < len(row.diffs) else []
        parts = [(_TAGS.get(DIFF_PARTS.of(part.kind), ""), part.text) for part in diff]
        found = row_of(stored)
        cells.append(Cell(found, stored, parts or [("", found.said)]))
    return cells
