"""The list of experiments, and how far one is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from services import rpc
from services.errors import PermissionDeniedError
from services.gateway import context
from services.gateway.http.middleware import EXPERIMENT_FORM
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.words.jobs import is_finished, stage_of
from touchstone.v1 import job_pb2, results_service_pb2

PAGE_SIZE = 50
LIVE = ("running", "scoring", "pending")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment's jobs are together. `word` is their state: that of the first unfinished one, or else of
    the worst one."""

    word: str
    done: int
    total: int
    live: bool

    @classmethod
    def of(cls, experiment: results_service_pb2.Experiment) -> Progress:
        rows = len(experiment.prompts) * experiment.scenarios * experiment.repeats
        counted = Counter(map(_word, experiment.jobs))
        order = (*LIVE, "failed", "cancelled", "incomplete", "completed")
        return cls(
            word=next((word for word in order if counted[word]), "without jobs"),
            done=sum(job.progress.items_done for job in experiment.jobs),
            total=sum(job.progress.items_total or rows for job in experiment.jobs),
            live=any(not is_finished(job) for job in experiment.jobs),
        )

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0


def _word(job: job_pb2.Job) -> str:
    word = stage_of(job)
    return "incomplete" if word == "completed" and job.incomplete else word


def address(name: str) -> str:
    """The experiment's page. Names that the path of a page could not hold are in the query."""
    return f"/experiments?{urlencode({'name': name})}" if name == "new" else f"/experiments/{quote(name)}"


def cells(experiment: results_service_pb2.Experiment) -> int:
    """Combinations of model, prompt and scenario."""
    return len(experiment.jobs) * len(experiment.prompts) * experiment.scenarios


def require_admin(request: Request) -> rpc.Identity:
    """The caller. Raises PermissionDeniedError, with a sentence for the page."""
    caller = context.identity(request)
    if not caller.is_admin:
        raise PermissionDeniedError(
            "Experiments are for admins. Ask an admin to start one, or to show you its figures."
        )
    return caller


async def index(request: Request) -> Response:
    """The list, newest first; for htmx only the part that changes. Raises PermissionDeniedError."""
    caller = require_admin(request)
    ctx = context.of(request)
    after = request.query_params.get("after", "")
    call = results_service_pb2.ListExperimentsRequest(page_size=PAGE_SIZE, page_token=after)
    found = await ctx.backend.ask(ctx.backend.results.ListExperiments, call, caller)
    shown = [(one, Progress.of(one)) for one in found.experiments]
    values = {
        "experiments": shown,
        "after": after,
        "more": f"/experiments?{urlencode({'after': found.next_page_token})}" if found.next_page_token else "",
        "live": not after and any_live(progress for _, progress in shown),
        "address": address,
        "cells": cells,
        "form_address": EXPERIMENT_FORM,
    }
    if is_fragment(request):
        return fragment(request, "experiments/_list.html", values)
    return await render(request, "experiments/index.html", "experiments", values)


def any_live(known: Iterable[Progress]) -> bool:
    return any(progress.live for progress in known)
