"""The compare page: two to ten finished runs against each other, and the list to choose them from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services import rpc
from services.errors import InvalidRequestError, NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.pages.compare.figures import Known, figures_of, focus_of, points
from services.gateway.pages.compare.view import LEAST, MARGINS, MOST, View
from services.gateway.pages.display import palette, work_words
from services.gateway.pages.layout.shell import render
from services.gateway.reads import datasets, jobs
from services.gateway.reads.questions import ask_side_by_side
from services.words.jobs import suite_of
from touchstone.v1 import comparison_pb2, dataset_service_pb2, job_pb2, metric_pb2, results_service_pb2

_TIMEOUT_S = 60.0
_MOST_CONFIGURATIONS = 500
_MOST_ASKED = 20
"""Datasets whose names are asked for one by one; others have their ids."""
_IN_SIGHT = 40
"""Configurations of a suite that can be ticked; of a single suite all are."""

Configuration = results_service_pb2.Configuration


@dataclass(frozen=True, slots=True)
class Choice:
    """A suite with the newest run of each configuration; `rest` counts those that are not shown."""

    suite: str
    title: str
    configurations: Sequence[Configuration]
    rest: int


async def compare(request: Request) -> Response:
    """The comparison; the list to choose from with fewer than two runs; what is wrong with a choice, with that list."""
    try:
        view = View.of(request)
        if request.query_params.get("against") == "previous" and len(view.job_ids) == 1:
            return RedirectResponse((await _with_previous(request, view)).address, 303)
        if view.job_ids and request.query_params.getlist("jobs") != [",".join(view.job_ids)]:
            # Ticked boxes come one by one.
            return RedirectResponse(view.address, 303)
        if len(view.job_ids) >= LEAST and not view.choosing:
            return await render(request, "compare/index.html", "compare", await compared(request, view))
    except (InvalidRequestError, NotFoundError) as error:
        status = 404 if isinstance(error, NotFoundError) else 400
        try:
            view = View.of(request)
        except (InvalidRequestError, NotFoundError):
            view = View(())
        return await _chooser(request, view, error.message, status)
    return await _chooser(request, view)


async def compared(request: Request, view: View) -> dict[str, Any]:
    """What the page and the report of two runs or more are drawn from. Raises InvalidRequestError and NotFoundError for
    runs that cannot be compared."""
    ctx, caller = context.of(request), context.identity(request)
    call = comparison_pb2.CompareRequest(subjects=view.job_ids, baseline=view.baseline, margin=view.margin)
    pair = view.job_ids if len(view.job_ids) == LEAST else ()
    found, known_jobs, results, rows, keys = await asyncio.gather(
        ctx.backend.ask(ctx.backend.results.Compare, call, caller, timeout_s=_TIMEOUT_S),
        _each(request, view.job_ids, _job),
        _each(request, view.job_ids, _result),
        _rows(request, [one for one in pair if one != view.reference] + [view.reference] if pair else []),
        _keys(request),
    )
    focus = focus_of(view, found)
    if not pair:
        rows = await _rows(request, [focus, view.reference])
    figures = figures_of(view, Known(found, known_jobs, results, keys, rows))
    one = next(iter(known_jobs.values()), None)
    return {
        "view": view,
        "found": found,
        "figures": figures,
        "title": work_words.heading(one) if one is not None else found.suite,
        "published": max((job.published_items for job in known_jobs.values()), default=0),
        "margins": _margins(view.margin),
        "most": MOST,
        "known_jobs": known_jobs,
        "results": results,
        "in_report": False,
    }


def _margins(chosen: float) -> list[tuple[str, str]]:
    """Values of δ with their words, the chosen one among them."""
    return [(f"{one:g}", points(one)) for one in sorted({*MARGINS, chosen})]


async def _job(request: Request, job_id: str) -> job_pb2.Job:
    ctx, caller = context.of(request), context.identity(request)
    stored = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
    return (await ctx.backend.ask(ctx.backend.results.GetJob, stored, caller)).job


async def _result(request: Request, job_id: str) -> metric_pb2.JobResult:
    return await jobs.result_of(context.of(request).backend, job_id, context.identity(request))


async def _each(request: Request, job_ids: Sequence[str], read: Any) -> Mapping[str, Any]:
    """By job, without those that cannot be read: the comparison itself says what is wrong."""
    answers = await asyncio.gather(*(read(request, job_id) for job_id in job_ids), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, TouchstoneError):
            raise answer
    return {
        job_id: answer for job_id, answer in zip(job_ids, answers, strict=True) if not isinstance(answer, BaseException)
    }


async def _rows(request: Request, job_ids: Sequence[str]) -> results_service_pb2.ListSideBySideResponse | None:
    """The counts of two runs' common rows; None where they have none, or cannot be read."""
    if not job_ids:
        return None
    call = results_service_pb2.ListSideBySideRequest(job_ids=job_ids, with_tasks=True, without_rows=True)
    try:
        return await ask_side_by_side(context.of(request).backend, call, context.identity(request))
    except TouchstoneError:
        return None


async def _keys(request: Request) -> Sequence[palette.Key]:
    try:
        return await context.of(request).catalogue.model_keys()
    except TouchstoneError:
        return ()


async def _with_previous(request: Request, view: View) -> View:
    """The run against the configuration's run before it. Raises NotFoundError where there is none."""
    job = await _job(request, view.job_ids[0])
    previous, _ = await jobs.runs_around(context.of(request).backend, job, context.identity(request))
    if previous is None:
        raise NotFoundError(
            f"Job {job.job_id} is the first completed run of its configuration. Choose another run to compare it with."
        )
    return replace(view, job_ids=(job.job_id, previous.job_id))


async def _chooser(request: Request, view: View, problem: str = "", status: int = 200) -> Response:
    """The newest run of each configuration by suite. Of the suite of the chosen runs alone, where they have one."""
    chosen = await _each(request, view.job_ids, _job)
    suites = list(dict.fromkeys(suite_of(job.spec) for job in chosen.values()))
    wanted = suites[0] if len(suites) == 1 else view.suite
    choices = await _choices(request, wanted, view.job_ids)
    values = {
        "view": view,
        "problem": problem,
        "chosen": list(chosen.values()),
        "split": [_of_suite(view, chosen, suite) for suite in suites] if len(suites) > 1 else [],
        "choices": choices,
        "wanted": wanted,
        "slots": palette.assign(
            await _keys(request), ((one.endpoint, one.model) for choice in choices for one in choice.configurations)
        ),
        "most": MOST,
    }
    return await render(request, "compare/choose.html", "compare", values, status)


def _of_suite(view: View, chosen: Mapping[str, job_pb2.Job], suite: str) -> tuple[str, int, str]:
    """A suite's name, how many of the chosen runs are of it, and the address that compares them alone."""
    own = {job_id: job for job_id, job in chosen.items() if suite_of(job.spec) == suite}
    alone = replace(view, job_ids=tuple(own), baseline="", focus="", choosing=False, suite="")
    return work_words.heading(next(iter(own.values()))), len(own), alone.address


async def _datasets(ctx: context.Context, caller: rpc.Identity) -> dict[str, str]:
    """The names of the newest listed datasets."""
    call = dataset_service_pb2.ListDatasetsRequest(page_size=_MOST_CONFIGURATIONS)
    try:
        held = (await ctx.backend.ask(ctx.backend.datasets.ListDatasets, call, caller)).datasets
    except TouchstoneError:
        return {}
    return {one.dataset_id: one.name for one in held}


async def _choices(request: Request, wanted: str, chosen: Sequence[str]) -> list[Choice]:
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ListConfigurationsRequest(page_size=_MOST_CONFIGURATIONS)
    found = (await ctx.backend.ask(ctx.backend.results.ListConfigurations, call, caller)).configurations
    try:
        titles = {suite.suite: suite.title for suite in await ctx.catalogue.suites()}
    except TouchstoneError:
        titles = {}
    if any(jobs.is_dataset(one.suite) for one in found):
        titles |= await _datasets(ctx, caller)
    by_suite: dict[str, list[Configuration]] = {}
    for one in found:
        if one.job_id not in chosen and wanted in ("", one.suite):
            by_suite.setdefault(one.suite, []).append(one)
    by_suite = {suite: held for suite, held in by_suite.items() if wanted or len(held) >= LEAST}
    # Deleted datasets and those of experiments are in no list.
    unlisted = [suite for suite in by_suite if suite not in titles][:_MOST_ASKED]
    told = await asyncio.gather(*(datasets.name_of(ctx.backend, suite, caller) for suite in unlisted))
    titles |= dict(zip(unlisted, told, strict=True))
    most = _MOST_CONFIGURATIONS if wanted else _IN_SIGHT
    return [
        Choice(suite, titles.get(suite) or suite, held[:most], len(held[most:])) for suite, held in by_suite.items()
    ]
