"""People rate a job's answers under a rubric: one answer at a time, in an order drawn at random, without the model's
name and the judges' scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import ConflictError, InvalidRequestError, NotFoundError, TouchstoneError
from services.experiments.prompts import data
from services.gateway import context
from services.gateway.pages.display import conversation
from services.gateway.pages.display.work_words import dataset_of, heading
from services.gateway.pages.forms.rating_form import RatingForm
from services.gateway.pages.items.opinions import ask
from services.gateway.pages.items.side_by_side import MOST_SHOWN
from services.gateway.pages.jobs import agreement
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.words import rubrics
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import Rating
from touchstone.v1.rubric_pb2 import Rubric

LISTED = 100
"""The ratings that the page lists, the newest first."""
_ROLES = re.compile(r"(?m)^(system|user|assistant|tool):")
_PAGES = 20
_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class View:
    """What the address says: the rubric's digest, the answer that is open, and `after`, a place in the queue before
    which everything was skipped. Without an answer, the next one of the queue is open."""

    job_id: str
    digest: str
    answer: str = ""
    after: str = ""

    def address(self, page: str = "rate", **changes: str) -> str:
        """The page with some choices changed."""
        asked = {"rubric": self.digest, "answer": self.answer, "after": self.after} | changes
        return f"/jobs/{self.job_id}/{page}?{urlencode({name: one for name, one in asked.items() if one})}"


@dataclass(frozen=True, slots=True)
class Known:
    """A rubric that can be chosen, and who judges by it."""

    rubric: Rubric
    digest: str
    sources: list[str]


@dataclass(frozen=True, slots=True)
class Said:
    """An answer that the caller rated before: its address, and the scores in the order of the criteria."""

    key: str
    name: str
    address: str
    scores: list[str]
    note: str


@cache
def shipped() -> Rubric:
    """The rubric that ships with Touchstone."""
    return rubrics.parse(data("rubrics", "tip-v1.json"))


async def rate_page(request: Request) -> Response:
    """The answer that is open with the rubric, or the choice of a rubric. Raises ConflictError for a job whose answers
    cannot be rated, and NotFoundError for an unknown rubric."""
    job, view = await _rated(request)
    if not view.digest:
        return await render(request, "rating/choose.html", "history", await _choice(request, job, "", ""))
    rubric, mine = await _mine(request, job, view)
    return await _shown(request, job, view, rubric, mine)


async def rate(request: Request) -> Response:
    """Keeps a rubric that was written, stores a rating, or takes one back; then shows what follows. 422 with a sentence
    under each wrong field."""
    job, view = await _rated(request)
    sent = await request.form()
    if not view.digest:
        return await _keep(request, job, str(sent.get("rubric", "")).replace("\r\n", "\n"))
    rubric, mine = await _mine(request, job, view)
    place = place_of(str(sent.get("answer", "")))
    if place is None:
        raise InvalidRequestError("The form names no answer. Open the answer again.", "answer")
    form, takes_back = RatingForm(), sent.get("act") == "clear"
    if not takes_back:
        form = RatingForm.read(sent, rubric)
        place.scores, place.note = form.scores(rubric), form.note
    if not form.errors:
        form.failure = await _store(request, job, rubric, place)
    if form.errors or form.failure:
        return await _shown(request, job, replace(view, answer=key_of(place)), rubric, mine, form)
    view = replace(view, answer=key_of(place) if takes_back else "")
    if "hx-request" not in request.headers:
        return RedirectResponse(view.address(), 303)
    rubric, mine = await _mine(request, job, view)
    return await _shown(request, job, view, rubric, mine)


async def agreement_page(request: Request) -> Response:
    """How the people who rate under a rubric agree with each other, and the judges with them."""
    job, view = await _rated(request)
    rubric, _ = await _mine(request, job, view)
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ListJudgesRequest(job_id=job.job_id)
    found = await ctx.backend.ask(ctx.backend.results.ListJudges, call, caller)
    of_rubric = [(run.job, agreement.of_run(run)) for run in found.judges if rubrics.digest(run.rubric) == view.digest]
    outside = [(one, agreement.of_run(one)) for one in found.outside if rubrics.digest(one.rubric) == view.digest]
    people = next((one for one in map(agreement.of_people, found.people) if one.digest == view.digest), None)
    values = {
        "job": job,
        "view": view,
        "rubric": rubric,
        "title": heading(job),
        "judges": [(judge, agreed) for judge, agreed in of_rubric if agreed is not None],
        "outside": [(one, agreed) for one, agreed in outside if agreed is not None],
        "waiting": sum(agreed is None for _, agreed in (*of_rubric, *outside)),
        "people": people,
    }
    if is_fragment(request):
        return fragment(request, "rating/_agreement.html", values)
    return await render(request, "rating/agreement.html", "history", values)


async def _rated(request: Request) -> tuple[job_pb2.Job, View]:
    ctx = context.of(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], context.identity(request))
    if job.spec.HasField("judging"):
        raise ConflictError(f"Job {job.job_id} judges answers itself.")
    if not jobs.can_judge(job, ""):
        raise ConflictError(f"Job {job.job_id} has not completed. Rate its answers once it has.")
    texts = {name: request.query_params.get(name, "")[:2_000] for name in ("rubric", "answer", "after")}
    return job, View(job.job_id, texts["rubric"], texts["answer"], texts["after"])


async def _mine(request: Request, job: job_pb2.Job, view: View) -> tuple[Rubric, list[Rating]]:
    """The rubric of this digest, and what the caller rated under it, the newest first. Raises NotFoundError."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ListRatingsRequest(
        job_id=job.job_id, rubric_digest=view.digest, rater=caller.user, page_size=_PAGE
    )
    mine: list[Rating] = []
    known: dict[str, Rubric] = {rubrics.digest(shipped()): shipped()}
    for _ in range(_PAGES):
        page = await ctx.backend.ask(ctx.backend.results.ListRatings, call, caller)
        mine += (one for one in page.ratings if not one.judge)
        known |= {rubrics.digest(one): one for one in page.rubrics}
        call.page_token = page.next_page_token
        if not page.next_page_token:
            break
    if view.digest not in known:
        # Nobody rated under a judge's rubric yet.
        for one in await _known(request, job):
            known[one.digest] = one.rubric
    if view.digest not in known:
        raise NotFoundError(f"No rubric {view.digest[:8]} is known for this job. Choose one of its rubrics.")
    mine.sort(key=lambda one: (one.rated_at.ToNanoseconds(), key_of(one)), reverse=True)
    return known[view.digest], mine


async def _known(request: Request, job: job_pb2.Job) -> list[Known]:
    """The rubrics of the job's judges, the shipped one, and those under which people rated."""
    found: dict[str, Known] = {}

    def add(rubric: Rubric, source: str) -> None:
        digest = rubrics.digest(rubric)
        found.setdefault(digest, Known(rubric, digest, []))
        if source not in found[digest].sources:
            found[digest].sources.append(source)

    judges = await ask(request, results_service_pb2.ListJudgesRequest(job_id=job.job_id))
    for run in judges.judges:
        add(run.rubric, f"judge {run.job.spec.model}")
    for judge in job.spec.judges:
        add(rubrics.parse(judge.rubric), f"judge {judge.model}")
    for outside in judges.outside:
        add(outside.rubric, f"outside judge {outside.judge}")
    add(shipped(), "ships with Touchstone")
    for people in judges.people:
        add(people.rubric, "people rate by it")
    return list(found.values())


async def _choice(request: Request, job: job_pb2.Job, written: str, problem: str) -> dict[str, Any]:
    return {
        "job": job,
        "title": heading(job),
        "known": [(one, View(job.job_id, one.digest).address()) for one in await _known(request, job)],
        "written": written,
        "problem": problem,
    }


async def _keep(request: Request, job: job_pb2.Job, text: str) -> Response:
    """Stores a rubric, so that its digest names it."""
    ctx, caller = context.of(request), context.identity(request)
    try:
        rubric = rubrics.parse(text)
    except ValueError as error:
        values = await _choice(request, job, text[: 4 * rubrics.MOST_BYTES], f"The rubric {error}.")
        return await render(request, "rating/choose.html", "history", values, 422)
    call = results_service_pb2.RateAnswersRequest(job_id=job.job_id, rubric=rubric)
    await ctx.backend.ask(ctx.backend.results.RateAnswers, call, caller)
    return RedirectResponse(View(job.job_id, rubrics.digest(rubric)).address(), 303)


async def _store(request: Request, job: job_pb2.Job, rubric: Rubric, rating: Rating) -> str:
    """A sentence if it cannot be stored; empty if it was."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.RateAnswersRequest(job_id=job.job_id, rubric=rubric, ratings=[rating])
    try:
        await ctx.backend.ask(ctx.backend.results.RateAnswers, call, caller)
    except TouchstoneError as error:
        lines = getattr(error, "lines", ())
        return lines[0][1] if lines else error.message
    return ""


async def _shown(
    request: Request,
    job: job_pb2.Job,
    view: View,
    rubric: Rubric,
    mine: Sequence[Rating],
    form: RatingForm | None = None,
) -> Response:
    """The desk as a part of the page for htmx, else the whole page."""
    values = await _desk(request, job, view, rubric, mine, form)
    status = 422 if form else 200
    if not is_fragment(request):
        return await render(request, "rating/index.html", "history", values, status)
    part = fragment(request, "rating/_desk.html", values, status)
    part.headers["HX-Push-Url"] = values["view"].address()
    return part


async def _desk(
    request: Request, job: job_pb2.Job, view: View, rubric: Rubric, mine: Sequence[Rating], form: RatingForm | None
) -> dict[str, Any]:
    """What the desk is drawn from. Raises NotFoundError for an answer that does not exist."""
    queue = await _queue(request, job, view, rubric)
    if view.after and not queue.answers and queue.unrated:
        # All that is left was skipped before.
        view = replace(view, after="")
        queue = await _queue(request, job, view, rubric)
    place = place_of(view.answer) or next(map(_place, queue.answers), None)
    said = [_said(view, rubric, one) for one in mine[:LISTED]]
    values: dict[str, Any] = {
        "job": job,
        "title": heading(job),
        "view": view,
        "rubric": rubric,
        "queue": queue,
        "rater": context.identity(request).user,
        "said": said,
        "total": len(mine),
        "most_read": MOST_SHOWN,
        "place": place,
    }
    if place is None:
        return values
    key = key_of(place)
    before = next((one for one in mine if key_of(one) == key), None)
    form = form or RatingForm.of(before)
    stops = [key_of(one) for one in mine]
    at = stops.index(key) if key in stops else -1
    skipped = view.address(answer="", after=queue.next_page_token)
    if not view.answer and not queue.next_page_token:
        skipped = view.address(answer="", after="") if view.after else ""
    return values | {
        "key": key,
        "rating": before,
        "form": form,
        "questions": form.questions(rubric),
        "previous": view.address(answer=stops[at + 1]) if at + 1 < len(stops) else "",
        "next": view.address(answer=stops[at - 1]) if at > 0 else view.address(answer="") if view.answer else skipped,
        "skips": bool(not view.answer and skipped),
        **await _answer(request, job, place),
    }


async def _queue(
    request: Request, job: job_pb2.Job, view: View, rubric: Rubric
) -> results_service_pb2.ListUnratedResponse:
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ListUnratedRequest(job_id=job.job_id, rubric=rubric, page_size=1, page_token=view.after)
    return await ctx.backend.ask(ctx.backend.results.ListUnrated, call, caller)


async def _answer(request: Request, job: job_pb2.Job, place: Rating) -> dict[str, Any]:
    """The answer with what was asked. Nothing of it says whose it is."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.GetItemRequest(job_id=job.job_id, task=place.task, item=place.item, repeat=place.repeat)
    result = (await ctx.backend.ask(ctx.backend.results.GetItem, call, caller)).item.result
    if result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR:
        raise NotFoundError(f"There is no answer to item {place.item} of task {place.task!r}: its call failed.")
    pictures = await conversation.pictures(ctx.backend, caller, dataset_of(job), result)
    return {
        "result": result,
        "asked": _asked(result.prompt),
        "turns": conversation.turns(result.messages, pictures),
        "calls": conversation.called(result.tool_calls),
    }


def _asked(prompt: str) -> str:
    """A prompt of one message without its role."""
    alone = prompt.removeprefix("user:").lstrip()
    return prompt if _ROLES.search(alone) else alone


def key_of(place: Rating) -> str:
    """As the address names an answer."""
    return f"{place.task}:{place.item}" + (f".{place.repeat}" if place.repeat else "")


def place_of(key: str) -> Rating | None:
    """The answer that a key names, without scores; None for any other text."""
    task, _, number = key.rpartition(":")
    item, _, repeat = number.partition(".")
    numbers = [item, *([repeat] if "." in number else [])]
    if not task or not all(one.isascii() and one.isdecimal() and len(one) < 10 for one in numbers):
        return None
    return Rating(task=task, item=int(item), repeat=int(repeat or 0))


def _place(answer: results_service_pb2.AnswerToRate) -> Rating:
    return Rating(task=answer.task, item=answer.item, repeat=answer.repeat)


def _said(view: View, rubric: Rubric, rating: Rating) -> Said:
    given = RatingForm.of(rating).given
    repeat = f", answer {rating.repeat + 1}" if rating.repeat else ""
    key = key_of(rating)
    return Said(
        key=key,
        name=f"{rating.task} {rating.item}{repeat}",
        address=view.address(answer=key),
        scores=[given.get(one.name, "") for one in rubric.criteria],
        note=rating.note,
    )
