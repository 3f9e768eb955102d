"""The page of a decision, live while it runs: what was found, the evidence over the items, and what it saved."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from services.errors import ConflictError, TouchstoneError
from services.gateway import context
from services.gateway.pages.compare.view import MOST as MOST_RUNS
from services.gateway.pages.compare.view import View as Comparison
from services.gateway.pages.decisions import drawing, race, sentences
from services.gateway.pages.decisions.drawing import NARROW, WIDE, Line
from services.gateway.pages.decisions.race import Side
from services.gateway.pages.decisions.sentences import times
from services.gateway.pages.display import formatting, palette, work_words
from services.gateway.pages.forms.decision_form import SIDES, own_field, settings, written
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.reads import decisions, jobs
from services.gateway.reads.questions import MOST_JOBS
from services.words.enums import DECISION_VERDICTS
from services.words.jobs import can_retry, is_finished
from touchstone.v1 import decision_pb2, job_pb2, scheduler_service_pb2

_ROWS = 12
"""Of the table with the evidence in figures."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What may be found, with the evidence for it by now, or at the verdict: how many times the gambler's capital has
    grown."""

    words: str
    tone: str
    times: str
    shown: bool
    line: Line


@dataclass(frozen=True, slots=True)
class Saving:
    """What was not spent."""

    label: str
    value: str
    under: str


async def show(request: Request) -> Response:
    """The page, or for htmx the part of it that changes. 404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    found = await decisions.find(ctx.backend, request.path_params["decision_id"], caller)
    values = view(found, await _keys(request), jobs.may_change(found.baseline, caller))
    if is_fragment(request):
        return fragment(request, "decisions/_decision.html", values)
    return await render(request, "decisions/show.html", "decisions", values)


async def stop(request: Request) -> Response:
    """Cancels the jobs, and shows the decision. 409 if both have ended."""
    ctx, caller = context.of(request), context.identity(request)
    found = await decisions.find(ctx.backend, request.path_params["decision_id"], caller)
    live = [job for job in decisions.jobs_of(found) if not is_finished(job)] or [found.baseline]
    for job in live:
        # The scheduler stops the second job of two with the first.
        with nullcontext() if job is live[0] else suppress(ConflictError):
            call = scheduler_service_pb2.CancelJobRequest(job_id=job.job_id)
            await ctx.backend.ask(ctx.backend.scheduler.CancelJob, call, caller)
    return go_to(request, address(found.decision_id))


def address(decision_id: str) -> str:
    return f"/decisions/{decision_id}"


def of_schedule(schedule_id: str) -> str:
    """The page with what the decisions of a schedule found."""
    return f"/decisions?{urlencode({'schedule': schedule_id})}"


def again(found: decision_pb2.Decision) -> str:
    """The form, filled in as for this decision."""
    asked = []
    for place, job in enumerate(decisions.jobs_of(found)):
        model, parameters = f"{job.spec.endpoint}|{job.spec.model}", written(job.spec.sampling)
        if place < len(SIDES):
            asked.append((SIDES[place], model))
            asked += [(f"{SIDES[place]}-{name}", value) for name, value in parameters.items()]
        else:
            asked.append(("further", model))
            if parameters:
                asked.append((own_field(model), ", ".join(f"{name}={value}" for name, value in parameters.items())))
    spec = found.baseline.spec
    asked.append(("work", spec.dataset.dataset_id or spec.suite.suite))
    asked += settings(spec).items()
    return f"/decisions/new?{urlencode(asked)}"


async def _keys(request: Request) -> Sequence[palette.Key]:
    try:
        return await context.of(request).catalogue.model_keys()
    except TouchstoneError:
        return ()


def view(found: decision_pb2.Decision, keys: Sequence[palette.Key], may_change: bool) -> dict[str, Any]:
    """What the page is drawn from."""
    models = sides(found, keys)
    live = decisions.is_live(found)
    claims = [] if found.racers else _claims(found, *models)
    ids = [side.job.job_id for side in models]
    schedule_id = found.baseline.spec.schedule_id
    complete = all(side.job.state == job_pb2.Job.STATE_COMPLETED for side in models)
    return {
        "decision": found,
        "here": address(found.decision_id),
        "models": models,
        "work": work_words.heading(found.baseline),
        "verdict": DECISION_VERDICTS.of(found.verdict),
        "headline": sentences.headline(found),
        "explained": sentences.explained(found),
        "sureness": sentences.sureness(found),
        "live": live,
        "asked": decisions.asked_pairs(found),
        "savings": _savings(found),
        "claims": claims,
        "evidence": _evidence([claim.line for claim in claims], found),
        "chance": _chance(found),
        "difference": _difference(found),
        "worth": sentences.worth(found) if found.path else "",
        "rows": _rows(found),
        "race": race.of(found, models) if found.racers else None,
        "side_by_side": f"/side-by-side?jobs={','.join(ids)}" if found.pairs and len(ids) <= MOST_JOBS else "",
        "comparison": Comparison(tuple(ids)).address if complete and len(ids) <= MOST_RUNS else "",
        "can_run_rest": any(not live and can_retry(side.job) for side in models),
        "may_change": may_change,
        "again": again(found),
        "repeat": of_schedule(schedule_id) if schedule_id else f"/settings?job={found.decision_id}#schedules",
        "scheduled": bool(schedule_id),
        "api": f"/api/v1/benchmarking/decisions/{found.decision_id}",
    }


def sides(found: decision_pb2.Decision, keys: Sequence[palette.Key]) -> list[Side]:
    """Of two models the candidate comes first; those of a race are in their order."""
    jobs_ = decisions.jobs_of(found)
    slots = palette.assign(keys, [(job.spec.endpoint, job.spec.model) for job in jobs_])
    roles = ["baseline", *("candidate" for _ in jobs_[1:])]
    made = [
        Side(name, role, job, None if job.baseline else slots[job.spec.endpoint, job.spec.model])
        for name, role, job in zip(decisions.names(found), roles, jobs_, strict=True)
    ]
    return made if found.racers else made[::-1]


def _tones(candidate: Side, baseline: Side) -> tuple[str, str]:
    """Of their lines. Two colours can look alike, so the baseline's is dashed as well."""
    one, other = ("plain" if side.slot is None else f"m{side.slot % 8 + 1}" for side in (candidate, baseline))
    return one, f"{other} dashed"


def _claims(found: decision_pb2.Decision, candidate: Side, baseline: Side) -> list[Claim]:
    mine, theirs = _tones(candidate, baseline)
    wanted = [("better", f"{candidate.name} is better", mine), ("worse", f"{baseline.name} is better", theirs)]
    if found.baseline.spec.deciding.margin:
        margin = sentences.points(found.baseline.spec.deciding.margin)
        wanted.append(("equivalent", f"they differ by less than {margin}", "none"))
    return [
        Claim(
            words=words,
            tone=tone,
            times=times(getattr(_decisive(found), name)) if found.path else "",
            shown=DECISION_VERDICTS.of(found.verdict) == name,
            line=Line(tone, [(0, 0.0), *((point.pairs, getattr(point, name)) for point in found.path)]),
        )
        for name, words, tone in wanted
    ]


def _decisive(found: decision_pb2.Decision) -> decision_pb2.DecisionPoint:
    """The point of the path that the verdict was found at; without a verdict, the last one."""
    return next((point for point in found.path if found.decided_at <= point.pairs and found.decided_at), found.path[-1])


def _evidence(lines: Sequence[Line], found: decision_pb2.Decision) -> list[Markup]:
    if not found.path:
        return []
    about = (
        f"Evidence after each of {found.path[-1].pairs:,} items; {found.threshold:.2f} as a natural logarithm decides"
    )
    return [drawing.evidence_chart(lines, found.threshold, found.decided_at, about, width) for width in (WIDE, NARROW)]


def _chance(found: decision_pb2.Decision) -> list[Markup]:
    """Nothing while nothing is predicted yet."""
    if all(point.chance >= 1 for point in found.path):
        return []
    about = "The chance that all items would show a difference"
    points = [(point.pairs, point.chance) for point in found.path]
    return [drawing.chance_chart(points, found.unlikely, found.decided_at, about, width) for width in (WIDE, NARROW)]


def _difference(found: decision_pb2.Decision) -> list[Markup]:
    if not found.path:
        return []
    points = [(one.pairs, 100 * one.difference, 100 * one.low, 100 * one.high) for one in found.path]
    margin = 100 * found.baseline.spec.deciding.margin
    about = f"The difference after each of {found.path[-1].pairs:,} items, in points. {sentences.worth(found)}"
    return [drawing.difference_chart(points, margin, found.decided_at, about, width) for width in (WIDE, NARROW)]


def _rows(found: decision_pb2.Decision) -> list[tuple[int, list[str], str, str]]:
    """Some points of the path in figures, the last one among them."""
    step = max(1, -(-len(found.path) // _ROWS))
    chosen = list(found.path)[::-1][::step][::-1]
    names = ["better", "worse", *(["equivalent"] if found.baseline.spec.deciding.margin else [])]
    return [
        (
            point.pairs,
            [times(getattr(point, name)) for name in names],
            f"{100 * point.chance:.0f} %",
            f"{formatting.change(point.low)} to {formatting.change(point.high)}",
        )
        for point in chosen
    ]


def _savings(found: decision_pb2.Decision) -> list[Saving]:
    """Empty while the jobs run, and without a verdict."""
    if not (found.verdict and found.HasField("saved")):
        return []
    saved, models = found.saved, len(decisions.jobs_of(found))
    share = formatting.share(saved.items, models * found.items_total)
    calls = Saving("Calls saved", f"{saved.items:,}", f"{share} of {'both' if models == 2 else 'all'} full runs")
    tokens = f"{saved.tokens:,}" if saved.HasField("tokens") else formatting.MISSING
    cost = f"${formatting.dollars(saved.cost_usd)}" if saved.HasField("cost_usd") else formatting.MISSING
    return [
        calls,
        Saving("Tokens saved", tokens, "about, read and generated" if saved.HasField("tokens") else "not known"),
        Saving("Money saved", cost, "about" if saved.HasField("cost_usd") else "no price is known"),
        Saving(
            "Time saved", formatting.rough(saved.seconds), f"about, of the {'slower' if models == 2 else 'slowest'} job"
        ),
    ]
