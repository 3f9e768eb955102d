"""An experiment's page: its jobs, the leaderboard of models with prompts, the heat map, and the prompts."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from services import further_fields, numbers, rpc
from services.errors import InvalidRequestError, TouchstoneError
from services.experiments.definition import KEEP_ALIVE, MAX_MODEL_B, N_TIPS
from services.experiments.prompts import SHIPPED
from services.experiments.reading import shipped_rubric
from services.gateway import context
from services.gateway.http.middleware import EXPERIMENT_FORM
from services.gateway.pages.boards.table import place_words
from services.gateway.pages.display import palette
from services.gateway.pages.experiments import board, listing
from services.gateway.pages.experiments.board import Board
from services.gateway.pages.experiments.listing import Progress
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import values
from services.words import rubrics
from services.words.enums import EXPERIMENT_SOURCES, PRIORITIES
from services.words.sampling import BY_REST_NAME, PARAMETERS
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import GetExperimentResponse

TOPS = (50, 100, 200, 500)
_QUICK, _SLOW_S, _OFTEN_S = 60, 10, 3
"""Boards of more rows are loaded again after longer."""
_SHOWN = 20_000
"""Characters of all templates together that the page shows at first."""
_LEAST_SHOWN, _MOST_SHOWN = 200, 2_000
"""Characters of one of them."""


@dataclass(frozen=True, slots=True)
class View:
    """The choices in the address: whose scores rank, which judge's, how many rows, and the prompt that is whole."""

    source: str
    judge: str
    top: int
    prompt: str

    @classmethod
    def of(cls, query: Mapping[str, str]) -> View:
        """Unknown choices fall back to the defaults: a page is not an API."""
        source, top = query.get("source", ""), query.get("top", "")
        return cls(
            source=source if source in EXPERIMENT_SOURCES else "",
            judge=query.get("judge", "")[:600],
            top=int(top) if top in map(str, TOPS) else TOPS[0],
            prompt=query.get("prompt", "")[:64],
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A version of a prompt: its text, or the beginning of it, and the address that shows all."""

    prompt_id: str
    digest: str
    text: str
    length: int
    rest: str


async def index(request: Request) -> Response:
    """The list, or the experiment that the query names."""
    named = request.query_params.get("name", "")
    return await _shown(request, named[:64]) if named else await listing.index(request)


async def show(request: Request) -> Response:
    """The page, or for htmx the part of it that changes. Raises PermissionDeniedError and NotFoundError."""
    return await _shown(request, request.path_params["name"])


async def _shown(request: Request, name: str) -> Response:
    caller = listing.require_admin(request)
    view = View.of(request.query_params)
    found = await _asked(request, name, view, caller)
    experiment, shown = found.experiment, Board(found)
    progress, at = Progress.of(experiment), listing.address(name)
    judges = board.judged_by(experiment)
    waiting = bool(judges and shown.unscored > shown.judge_failures)
    values_ = {
        "experiment": experiment,
        "board": shown,
        "found": found,
        "figures": board,
        "place_words": place_words,
        "view": view,
        "tops": TOPS,
        "source": EXPERIMENT_SOURCES.of(found.source) or "",
        "at": at,
        "query": {name: said for name, said in (("source", view.source), ("judge", found.judge)) if said},
        "here": _here(at, view),
        "progress": progress,
        "live": progress.live or waiting,
        "every": _SLOW_S if len(found.rows) > _QUICK else _OFTEN_S,
        "judges": judges,
        "cells": listing.cells(experiment),
        "slots": await _slots(request, found),
        "api": f"/api/bench/leaderboard/{quote(name)}",
        "runs": f"/api/bench/runs/{quote(name)}",
        "definition": f"/api/bench/definition/{quote(name)}",
        "form_address": EXPERIMENT_FORM,
        **_definition(experiment, view, at),
    }
    if is_fragment(request):
        return fragment(request, "experiments/_board.html", values_)
    return await render(request, "experiments/show.html", "experiments", values_)


async def _asked(request: Request, name: str, view: View, caller: rpc.Identity) -> GetExperimentResponse:
    """The board by these choices; by the first judge's scores where the one in the address has none."""
    ctx = context.of(request)
    call = results_service_pb2.GetExperimentRequest(
        name=name, source=EXPERIMENT_SOURCES.get(view.source), judge=view.judge
    )
    try:
        return await ctx.backend.ask(ctx.backend.results.GetExperiment, call, caller)
    except InvalidRequestError:
        if not view.judge:
            raise
        call.judge = ""
        return await ctx.backend.ask(ctx.backend.results.GetExperiment, call, caller)


async def _slots(request: Request, found: GetExperimentResponse) -> dict[tuple[str, str], int]:
    """Colours of the models."""
    try:
        keys = await context.of(request).catalogue.model_keys()
    except TouchstoneError:
        keys = []
    return palette.assign(keys, ((job.spec.endpoint, job.spec.model) for job in found.experiment.jobs))


def _here(at: str, view: View) -> str:
    """The page with the choices of its address."""
    chosen = {
        "source": view.source,
        "judge": view.judge,
        "top": str(view.top) if view.top != TOPS[0] else "",
        "prompt": view.prompt,
    }
    query = urlencode({name: value for name, value in chosen.items() if value})
    return f"{at}{'&' if '?' in at else '?'}{query}" if query else at


def _definition(experiment: results_service_pb2.Experiment, view: View, at: str) -> dict[str, Any]:
    """What was asked: the prompts with their templates, the parameters, and the command that asks the same."""
    held = values.members(experiment.definition) or {}
    prompts = [one for one in held.get("prompts", []) if isinstance(one, dict)]
    most = min(_MOST_SHOWN, max(_LEAST_SHOWN, _SHOWN // max(1, len(prompts))))
    inserted = {name: held[name] for name in ("n_tips", "diversity") if name in held}
    sampled = {name: held[name] for name in BY_REST_NAME if name in held}
    return {
        "prompts": [_prompt(one, most, view, at) for one in prompts],
        "inserted": inserted,
        "sampled": sampled,
        "keep_alive": KEEP_ALIVE,
        "command": _command(experiment, held, prompts, sampled),
    }


def _prompt(held: Mapping[str, Any], most: int, view: View, at: str) -> Prompt:
    name, text = str(held.get("id", "")), str(held.get("template", ""))
    cut = len(text) > most and name != view.prompt
    rest = f"{at}{'&' if '?' in at else '?'}{urlencode({'prompt': name})}#prompt-{quote(name)}" if cut else ""
    return Prompt(name, str(held.get("sha256", ""))[:8], f"{text[:most]}…" if cut else text, len(text), rest)


def _limits(jobs: Sequence[job_pb2.Job]) -> list[str]:
    """The arguments with the sizes that models and judges may have, where these are not the default ones."""
    models = _most_b({job.spec.max_model_b for job in jobs}, (job.spec.model for job in jobs), MAX_MODEL_B)
    asked = jobs[0].spec.judges
    judges = _most_b({one.max_model_b for one in asked}, (one.model for one in asked), models) if asked else models
    return [
        *(["--max-model-b", f"{models:g}"] if models != MAX_MODEL_B else []),
        *(["--max-judge-b", f"{judges:g}"] if judges != models else []),
    ]


def _most_b(limits: Collection[float], models: Iterable[str], default: float) -> float:
    """The largest limit; 0 for any. Jobs of earlier versions have none stored: what is by its name larger than the
    default was started with another."""
    if all(limits):
        return max(limits)
    return 0.0 if default and any(numbers.parameters_b(model) > default for model in models) else default


def _sampling(sampling: job_pb2.Sampling) -> Iterator[str]:
    """The arguments that give a judge these parameters."""
    given = {field.name: value for field, value in sampling.ListFields()}
    for name, one in PARAMETERS.items():
        if name in given:
            yield from (one.judge_flag, str(given[name]) if one.whole else f"{given[name]:.10g}")
    if further := further_fields.fields(sampling):
        yield from ("--judge-custom-config", further_fields.dump(further))


def _command(
    experiment: results_service_pb2.Experiment,
    held: Mapping[str, Any],
    prompts: Sequence[Mapping[str, Any]],
    sampled: Mapping[str, Any],
) -> str:
    """The command that starts the same, or continues it. Empty where it needs what only the definition's file holds:
    own prompts, own scenarios or a rubric of one's own."""
    own = [one for one in prompts if one.get("id") not in SHIPPED]
    scenarios = held.get("scenarios") or {}
    if own or not prompts or not experiment.jobs or not isinstance(scenarios, dict) or "set" not in scenarios:
        return ""
    if rubrics.digest(experiment.rubric) != rubrics.digest(shipped_rubric()):
        return ""
    models = [f"{job.spec.endpoint}/{job.spec.model}" for job in experiment.jobs]
    if any("," in model for model in models):
        return ""
    words = ["touchstone", "bench", "collect", "--experiment", experiment.name, "--models", ",".join(models)]
    words += ["--prompts", ",".join(experiment.prompts), "--n-scenarios", str(experiment.scenarios)]
    if experiment.repeats > 1:
        words += ["--repeats", str(experiment.repeats)]
    if held.get("n_tips", N_TIPS) != N_TIPS:
        words += ["--n-tips", str(held["n_tips"])]
    if held.get("diversity"):
        words.append("--diversity")
    words += _limits(experiment.jobs)
    for name, value in sampled.items():
        words += [BY_REST_NAME[name].flags[0], f"{value:g}" if isinstance(value, float) else str(value)]
    budgets = [job.spec.budget_usd for job in experiment.jobs]
    if all(budgets):
        # The jobs share one.
        words += ["--budget-usd", f"{sum(budgets):.10g}"]
    if experiment.jobs[0].spec.priority in (job_pb2.PRIORITY_LOW, job_pb2.PRIORITY_HIGH):
        words += ["--priority", PRIORITIES.of(experiment.jobs[0].spec.priority)]
    for one in experiment.jobs[0].spec.judges:
        words += ["--judge-model", one.model, "--judge-endpoint", one.endpoint]
        if one.repeats:
            words += ["--judge-repeats", str(one.repeats)]
        words += _sampling(one.sampling)
        if one.budget_usd:
            words += ["--judge-budget-usd", f"{one.budget_usd:.10g}"]
    return shlex.join(words)
