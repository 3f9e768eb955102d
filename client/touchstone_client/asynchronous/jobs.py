"""Jobs: create, follow, cancel, repeat, delete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Unpack

from services.words import replays
from services.words.decisions import DEFAULT_ERROR
from services.words.enums import PRIORITIES
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, scheduler_service_pb2, scoring_pb2
from touchstone_client import requests
from touchstone_client.asynchronous.calls import Calls
from touchstone_client.errors import ClientError, NotFoundError
from touchstone_client.requests import CLOSE_S, EXPERIMENT_S, IMPORT_S, JUDGE_S, JobFilters, ScoredJob
from touchstone_client.specs import JudgeOptions, judge_spec, judging_spec, rerun_spec, rescore_spec
from touchstone_client.watching import Watch


class Jobs(Calls):
    """Jobs of any user and age, as far as the token's user may see them."""

    async def run(self, spec: job_pb2.JobSpec, request_id: str = "") -> job_pb2.Job:
        """Queues a job. The same request id returns the same job; without one, each call creates a job."""
        answer = await self._ask(requests.create_job(spec, request_id), scheduler_service_pb2.CreateJobResponse)
        return answer.job

    async def run_all(self, specs: Iterable[job_pb2.JobSpec], request_id: str = "") -> list[job_pb2.Job]:
        """Queues up to 100 jobs, all or none: if one is refused, nothing is queued. Request ids work as in `run`."""
        request = requests.create_jobs(specs, request_id)
        answer = await self._ask(request, scheduler_service_pb2.CreateJobsResponse)
        return [*answer.jobs]

    async def job(self, job_id: str) -> job_pb2.Job:
        """A job of any age: the scheduler knows live jobs and those of the last day, the results service older ones."""
        try:
            request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
            answer = await self._ask(request, scheduler_service_pb2.GetJobResponse)
            return answer.job
        except NotFoundError:
            return await self.stored_job(job_id)

    async def stored_job(self, job_id: str) -> job_pb2.Job:
        """A job as it is stored in the results service, which may be moments behind for a live or just ended one."""
        request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
        answer = await self._ask(request, results_service_pb2.ResultsServiceGetJobResponse)
        return answer.job

    async def jobs(self, **filters: Unpack[JobFilters]) -> AsyncIterator[job_pb2.Job]:
        """Jobs of any age, newest first."""
        async for page in self._pages(requests.list_jobs(filters), results_service_pb2.ResultsServiceListJobsResponse):
            for found in page.jobs:
                yield found

    async def history(self, days: int = 30, **filters: Unpack[JobFilters]) -> AsyncIterator[ScoredJob]:
        """Jobs created in the last `days` days, 0 for any time, with their averages; newest first."""
        request = requests.list_jobs(requests.recent(days, filters), with_scores=True)
        async for page in self._pages(request, results_service_pb2.ResultsServiceListJobsResponse):
            for scored in map(ScoredJob, page.jobs, page.scores):
                yield scored

    async def count_jobs(self, days: int = 0, **filters: Unpack[JobFilters]) -> int:
        """The number of jobs in `history`."""
        request = requests.list_jobs(requests.recent(days, filters), page_size=1)
        answer = await self._ask(request, results_service_pb2.ResultsServiceListJobsResponse)
        return answer.total_size

    async def watch(self, job_id: str, timeout_s: float | None = None) -> AsyncIterator[job_pb2.Job]:
        """The job now and after each change, until it is finished. Waits while a scheduler restarts.

        Raises TimeoutError after `timeout_s`; the job continues.
        """
        watch = Watch(job_id, timeout_s)
        request = scheduler_service_pb2.WatchJobRequest(job_id=job_id)
        while not watch.over:
            try:
                async for response in self._stream(request, scheduler_service_pb2.WatchJobResponse, watch.left_s()):
                    watch.heard(response.job)
                    yield response.job
                    if watch.over:
                        return
            except ClientError as error:
                if watch.forgotten(error):
                    yield await self.stored_job(job_id)
                    return
            await asyncio.sleep(watch.pause_s())

    async def wait(self, job_id: str, timeout_s: float | None = None) -> job_pb2.Job:
        """The job once it is finished. Raises TimeoutError after `timeout_s`; the job continues."""
        async for last in self.watch(job_id, timeout_s):
            job = last
        return job

    async def import_answers(
        self, requests: Iterable[results_service_pb2.ImportAnswersRequest]
    ) -> results_service_pb2.ImportAnswersResponse:
        """Stores another tool's answers, all or none; `importing` makes the requests out of its logs. Answers that the
        user has imported before are reported and not stored again, unless the first request says so."""
        return await self._send(
            requests,
            results_service_pb2.ImportAnswersRequest,
            results_service_pb2.ImportAnswersResponse,
            IMPORT_S,
        )

    async def close_recorded_run(self, name: str) -> list[job_pb2.Job]:
        """Closes the user's recorded run of that name and returns its jobs, one for each model. Closing again returns
        the same jobs."""
        request = results_service_pb2.CloseRecordedRunRequest(name=name)
        made = await self._ask(request, results_service_pb2.CloseRecordedRunResponse, CLOSE_S)
        if made.specs:
            return await self.run_all(made.specs, made.request_id)
        return [await self.job(job_id) for job_id in made.job_ids]

    async def cancel(self, job_id: str) -> job_pb2.Job:
        """Stops a job. StateError when it is finished."""
        request = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
        answer = await self._ask(request, scheduler_service_pb2.CancelJobResponse)
        return answer.job

    async def delete(self, job_id: str) -> None:
        """Deletes a finished job with its answers and scores. StateError while it runs, and while another job takes its
        answers."""
        request = scheduler_service_pb2.DeleteJobRequest(job_id=job_id)
        await self._ask(request, scheduler_service_pb2.DeleteJobResponse)

    async def set_priority(self, job_id: str, priority: job_pb2.Priority) -> job_pb2.Job:
        """Gives a waiting job another priority; for admins. StateError once it has started."""
        request = scheduler_service_pb2.SetJobPriorityRequest(job_id=job_id, priority=priority)
        answer = await self._ask(request, scheduler_service_pb2.SetJobPriorityResponse)
        return answer.job

    async def retry(self, job_id: str) -> job_pb2.Job:
        """Runs the missing items of a failed, cancelled or incomplete job, under the same id."""
        request = scheduler_service_pb2.RetryJobRequest(job_id=job_id)
        answer = await self._ask(request, scheduler_service_pb2.RetryJobResponse)
        return answer.job

    async def rescore(
        self,
        job_id: str,
        scoring: scoring_pb2.Scoring | None = None,
        reading: str = "",
        further: Sequence[scoring_pb2.Scoring] | None = None,
    ) -> job_pb2.Job:
        """A new job that scores this one's stored answers with the present scorer, without a call to the model. For
        uploaded rows, `scoring` may give another scoring, and `further` other further scorers; `reading` names the
        layers, as in `services.words.enums.READINGS`."""
        return await self.run(rescore_spec(await self.job(job_id), scoring, reading, further))

    async def rerun(
        self,
        job_id: str,
        outcomes: Iterable[item_result_pb2.Outcome],
        max_tokens: int | None = None,
        context_length: int | None = None,
        budget_usd: float | None = None,
    ) -> job_pb2.Job:
        """A new job that asks again for this job's items with these outcomes, and takes its other answers."""
        return await self.run(rerun_spec(await self.job(job_id), outcomes, max_tokens, context_length, budget_usd))

    async def replay(
        self,
        job_id: str,
        items: int = replays.USUAL_ITEMS,
        *,
        budget_usd: float | None = None,
        priority: str = "",
        request_id: str = "",
    ) -> job_pb2.Job:
        """A new job that asks about this number of items of a completed job again, in the same way. It never ranks;
        `replay_result` says how many answers changed. Request ids work as in `run`."""
        spec = replays.spec_of(await self.job(job_id), items)
        if budget_usd is not None:
            spec.budget_usd = budget_usd
        if priority:
            spec.priority = PRIORITIES[priority]
        return await self.run(spec, request_id)

    async def judge(
        self,
        job_id: str,
        *,
        endpoint: str,
        model: str,
        rubric: Mapping[str, Any] | str | None = None,
        against: str = "",
        priority: str = "",
        request_id: str = "",
        **options: Unpack[JudgeOptions],
    ) -> job_pb2.Job:
        """A new job in which a model judges this completed job's stored answers, as `judge_spec`. Request ids work as
        in `run`. InvalidError for a rubric with a mistake, StateError while the job is not completed.

        With `against`, another completed job's id, the judge compares the two jobs' answers to the same rows, each pair
        in both orders: for each criterion of the rubric it says which is better, without a rubric which answer is. Of
        the criteria, only names, descriptions and weights count.
        """
        judge = judge_spec(endpoint=endpoint, model=model, rubric=rubric, **options)
        request = requests.create_job(judging_spec(job_id, judge, priority, against), request_id)
        answer = await self._ask(request, scheduler_service_pb2.CreateJobResponse, JUDGE_S)
        return answer.job

    async def start_decision(
        self,
        baseline: job_pb2.JobSpec,
        candidate: job_pb2.JobSpec,
        *further: job_pb2.JobSpec,
        error: float = DEFAULT_ERROR,
        margin: float = 0.0,
        seed: int = 0,
        request_id: str = "",
    ) -> scheduler_service_pb2.StartDecisionResponse:
        """Asks two models the same items in one random order, until it is known whether the candidate is better or
        worse than the baseline, equivalent within `margin`, or unlikely to be shown to differ. `error` is the chance
        of a wrong verdict, `seed` that of the order. `decision` reads the verdict; the jobs stop once it is known.
        Request ids work as in `run`.

        With `further` candidates, it is a race: which model is the best? A job stops when another model is better."""
        request = requests.start_decision(baseline, candidate, further, error, margin, seed, request_id)
        return await self._ask(request, scheduler_service_pb2.StartDecisionResponse)

    async def run_experiment(
        self,
        definition: Mapping[str, Any] | str,
        *,
        judges: Iterable[job_pb2.Judge] = (),
        check_only: bool = False,
        request_id: str = "",
    ) -> scheduler_service_pb2.RunExperimentResponse:
        """Starts or continues an experiment: one job per model that has none, and what failed and cancelled jobs
        lack. `definition` is an object as docs/experiments.md describes it, or its JSON. `judges` are as of
        `judge_spec`, without a rubric, and judge by that of the experiment. With `check_only` nothing is started.

        For admins. InvalidError names each wrong field; StateError if an experiment of that name has other rows.
        """
        request = requests.run_experiment(definition, judges, check_only, request_id)
        return await self._ask(request, scheduler_service_pb2.RunExperimentResponse, EXPERIMENT_S)

    async def logs(self, job_id: str, level: str = "") -> AsyncIterator[scheduler_service_pb2.LogLine]:
        """What the services logged about a job, oldest first; `level` is "warning" or "error" for less."""
        request = scheduler_service_pb2.ListJobLogsRequest(job_id=job_id, level=level, page_size=1000)
        async for page in self._pages(request, scheduler_service_pb2.ListJobLogsResponse):
            for found in page.lines:
                yield found

    async def events(self, job_id: str = "") -> AsyncIterator[job_pb2.JobEvent]:
        """The audit trail of a job, or of all jobs without one; oldest first."""
        request = results_service_pb2.ListEventsRequest(job_id=job_id, page_size=100)
        async for page in self._pages(request, results_service_pb2.ListEventsResponse):
            for found in page.events:
                yield found
