"""What an experiment asked, answer by answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from services.errors import InvalidRequestError, NotFoundError
from services.experiments import candidates
from services.results import paging
from services.results.experiments import answers, stored
from services.results.experiments.stored import Stored
from services.results.statistics.metric_values import Floats
from services.results.storage.database import Connection, query
from services.words import chat, refusals, rubrics
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

_TEXT = 64 * 1024


def list_runs(connection: Connection, request: pb.ListExperimentRunsRequest) -> pb.ListExperimentRunsResponse:
    """Raises NotFoundError for the experiment and for one of its jobs that does not exist, InvalidRequestError for a
    prompt that it does not have and for a bad page."""
    experiment = stored.find(connection, request.name)
    jobs = [job for job in experiment.jobs if request.job_id in ("", job.job_id)]
    if request.job_id and not jobs:
        raise NotFoundError(f"Experiment {experiment.dataset.experiment.name} has no job {request.job_id}.")
    if request.prompt and request.prompt not in experiment.prompts:
        raise InvalidRequestError(refusals.not_valid(request.prompt, "prompt", experiment.prompts), "prompt")
    size = paging.page_size(request.page_size, 100, 500)
    filter_ = paging.page_filter(request)
    first, after = paging.decode_token(request.page_token, filter_, (int, int)) or [0, -1]
    found: list[tuple[int, pb.ExperimentRun]] = []
    for place in range(int(first), len(jobs)):
        of_job = _runs(connection, replace(experiment, jobs=[jobs[place]]), request, int(after), size + 1 - len(found))
        found += [(place, run) for run in of_job]
        after = -1
        if len(found) > size:
            break
    page, token = paging.fill_weighed(
        found, size, filter_, lambda row: [row[0], row[1].item], lambda row: row[1].ByteSize()
    )
    return pb.ListExperimentRunsResponse(runs=[run for _, run in page], next_page_token=token)


def _runs(
    connection: Connection, of_job: Stored, request: pb.ListExperimentRunsRequest, after: int, most: int
) -> Iterator[pb.ExperimentRun]:
    """Of one job, up to `most` of them, whose items come after that one."""
    wanted = np.arange(of_job.rows) > after
    if request.prompt:
        of_prompt = of_job.rows // len(of_job.prompts)
        wanted &= np.arange(of_job.rows) // of_prompt == of_job.prompts.index(request.prompt)
    # Only the rows of the page are read, unless the scores decide which rows these are.
    items = np.flatnonzero(wanted)[: None if request.judge_pending else most]
    if not items.size:
        return
    span = int(items[0]), int(items[-1])
    asked, said = answers.asked(connection, of_job, span), answers.ratings(connection, of_job, span)
    judged = [one.shares[:, 0] for one in answers.judged(connection, of_job, asked, said, span).values()]
    by_judges, rated = _mean(judged, of_job), answers.rated(of_job, said).shares[:, 0]
    pending = asked.answered[0] & np.isnan(by_judges[0]) & np.isnan(rated[0])
    items = (items[pending[items]][:most] if request.judge_pending else items).tolist()
    names = rubrics.names(of_job.rubric)
    (job,) = of_job.jobs
    texts = _texts(connection, job.job_id, items)
    for item in items:
        run = _run(of_job, job, item)
        if item in texts:
            _add_answer(run, texts[item])
        run.judge_pending = bool(pending[item])
        run.judged.extend(_shares(names, by_judges[:, item]))
        run.rated.extend(_shares(names, rated[:, item]))
        yield run


def _mean(judged: Sequence[Floats], of_job: Stored) -> Floats:
    """Over judges (metrics, rows), NaN where none has scored."""
    if not judged:
        return answers.nothing(of_job).shares[:, 0]
    every = np.stack(judged)
    known = ~np.isnan(every)
    n = known.sum(axis=0)
    found: Floats = np.where(n > 0, np.where(known, every, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
    return found


def _run(of_job: Stored, job: job_pb2.Job, item: int) -> pb.ExperimentRun:
    """The question alone."""
    cell, number = divmod(item, of_job.repeats)
    prompt, scenario = divmod(cell, len(of_job.scenarios))
    return pb.ExperimentRun(
        job_id=job.job_id,
        endpoint=job.spec.endpoint,
        model=job.spec.model,
        prompt=of_job.prompts[prompt],
        scenario=of_job.scenarios[scenario],
        number=number + 1,
        item=item,
        task=job.plan[0].task if job.plan else "",
    )


def _texts(connection: Connection, job_id: str, items: Sequence[int]) -> dict[int, tuple[Any, ...]]:
    rows = connection.execute(query("experiments/texts"), {"job_id": job_id, "items": items}).fetchall()
    return {row[0]: row[1:] for row in rows}


def _add_answer(run: pb.ExperimentRun, row: tuple[Any, ...]) -> None:
    task, outcome, response, tool_calls, latency_s, input_tokens, output_tokens = row
    answer = chat.answer_text(response, chat.read_calls(tool_calls)) if tool_calls else response
    run.task, run.outcome, run.latency_s = task, outcome, latency_s
    run.input_tokens, run.output_tokens = input_tokens, output_tokens
    run.answer = answer.encode()[:_TEXT].decode(errors="ignore")
    run.candidates.extend(candidates.read(answer).tips)


def _shares(names: Sequence[str], shares: Floats) -> list[pb.CriterionShare]:
    if np.isnan(shares[0]):
        return []
    return [pb.CriterionShare(criterion=name, share=share) for name, share in zip(names, shares.tolist(), strict=True)]
