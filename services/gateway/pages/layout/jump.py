"""The palette: jobs, named configurations, models, datasets, suites and actions that fit what is typed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.pages.display.formatting import shown
from services.gateway.pages.display.work_words import heading
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2, results_service_pb2


@dataclass(frozen=True, slots=True)
class Entry:
    """A place to go. `note` tells it from others of the same name; `key` is an id by which it is found, too."""

    address: str
    name: str
    note: str = ""
    key: str = ""


T = TypeVar("T")


_ACTIONS = (
    Entry("/run", "Start a run"),
    Entry("/compare", "Compare jobs"),
    Entry("/datasets", "Upload a dataset"),
    Entry("/jobs?status=failed", "Show jobs that failed"),
    Entry("/jobs", "Open the history of jobs"),
    Entry("/leaderboard", "Open the leaderboard"),
    Entry("/experiments", "Open the experiments"),
    Entry("/experiments/new", "Start an experiment"),
    Entry("/queue", "Open the queue"),
    Entry("/settings", "Open the settings"),
    Entry("/datasets/runs", "Open the runs over datasets"),
    Entry("/overview", "Open the overview"),
)
_MOST = 12
_LIMITS = {"Jobs": 4, "Configurations": 2, "Models": 3, "Datasets": 2, "Suites": 2}
_NEWEST = 100
"""Jobs whose names are searched. Older ones are found by their model."""
_PATIENCE_S = 2.0
"""The results come without those of a service that takes longer."""


async def jump(request: Request) -> Response:
    """The results as a page, or as the part that the palette shows. A whole id leads straight to its page."""
    text = request.query_params.get("q", "").strip()[:200]
    named = _named(text)
    if named and not is_fragment(request):
        return RedirectResponse(named[1].address, 303)
    groups = {named[0]: [named[1]]} if named else await _found(request, text.lower().split())
    values = {"groups": groups, "asked": text}
    if is_fragment(request):
        return fragment(request, "jump/_results.html", values)
    return await render(request, "jump/index.html", "", values)


def _named(text: str) -> tuple[str, Entry] | None:
    """The kind and the place of a whole id; None for other texts."""
    if jobs.is_dataset(text):
        return "Datasets", Entry(f"/datasets/{text}", text)
    try:
        return "Jobs", Entry(f"/jobs/{jobs.checked_id(text)}", text)
    except NotFoundError:
        return None


async def _found(request: Request, words: list[str]) -> dict[str, list[Entry]]:
    """What has every word in its name, note or id, by kind; without words the newest jobs and the actions."""
    ctx = context.of(request)
    found = {"Jobs": await _jobs(request, words)}
    if words:
        named, models, datasets, suites = await asyncio.gather(
            _configurations(request),
            _patiently(ctx.catalogue.model_keys()),
            _datasets(request, words),
            _patiently(ctx.catalogue.suites()),
        )
        found["Configurations"] = [
            Entry(f"/jobs/{one.job_id}", one.name or one.alias, _about(one), one.alias) for one in named
        ]
        found["Models"] = [
            Entry("/jobs?" + urlencode({"endpoint": endpoint, "model": model}), shown(model), f"on {endpoint}", model)
            for endpoint, model in models or ()
        ]
        found["Datasets"] = [Entry(f"/datasets/{one.dataset_id}", one.name) for one in datasets]
        found["Suites"] = [
            Entry("/leaderboard?" + urlencode({"suite": one.suite}), one.suite, "leaderboard") for one in suites or ()
        ]
    found = {kind: [e for e in entries if _fits(e, words)][: _LIMITS[kind]] for kind, entries in found.items()}
    room = max(1, _MOST - sum(map(len, found.values())))
    allowed = [one for one in _ACTIONS if context.identity(request).is_admin or "/experiments" not in one.address]
    found["Actions"] = [entry for entry in allowed if _fits(entry, words)][:room]
    return {kind: entries for kind, entries in found.items() if entries}


def _fits(entry: Entry, words: list[str]) -> bool:
    text = f"{entry.name} {entry.note} {entry.key}".lower()
    return all(word in text for word in words)


async def _jobs(request: Request, words: list[str]) -> list[Entry]:
    """Newest first: of the newest jobs, or else those whose model has the text."""
    newest = [_entry(job) for job in await _listed(request, _NEWEST, "")]
    if any(_fits(entry, words) for entry in newest) or len(words) != 1:
        return newest
    return [_entry(job) for job in await _listed(request, _LIMITS["Jobs"], words[0])]


def _entry(job: job_pb2.Job) -> Entry:
    note = f"{job.spec.endpoint} · {jobs.short_id(job.job_id)}"
    return Entry(f"/jobs/{job.job_id}", f"{heading(job)} on {shown(job.spec.model)}", note, job.job_id)


async def _listed(request: Request, most: int, model_query: str) -> list[job_pb2.Job]:
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=most, model_query=model_query, without_counts=True
    )
    answer = await _patiently(ctx.backend.ask(ctx.backend.results.ListJobs, call, caller, timeout_s=_PATIENCE_S))
    return list(answer.jobs) if answer else []


async def _configurations(request: Request) -> list[results_service_pb2.Configuration]:
    """Those with a name or an alias."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ListConfigurationsRequest(page_size=500, named=True)
    asked = ctx.backend.ask(ctx.backend.results.ListConfigurations, call, caller, timeout_s=_PATIENCE_S)
    answer = await _patiently(asked)
    return list(answer.configurations) if answer else []


def _about(one: results_service_pb2.Configuration) -> str:
    alias = f"{one.alias}: " if one.name and one.alias else ""
    return f"{alias}{shown(one.model)} on {one.endpoint}, newest run"


async def _datasets(request: Request, words: list[str]) -> list[dataset_pb2.Dataset]:
    """Those whose name has the first word."""
    ctx, caller = context.of(request), context.identity(request)
    call = dataset_service_pb2.ListDatasetsRequest(page_size=20, query=words[0])
    answer = await _patiently(ctx.backend.ask(ctx.backend.datasets.ListDatasets, call, caller, timeout_s=_PATIENCE_S))
    return list(answer.datasets) if answer else []


async def _patiently(read: Awaitable[T]) -> T | None:
    """None while the service is silent."""
    try:
        return await read
    except TouchstoneError:
        return None
