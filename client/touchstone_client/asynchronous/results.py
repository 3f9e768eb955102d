"""What jobs measured: metrics, items, rankings, comparisons, files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Unpack

import grpc

from services.experiments import stored_definition
from services.words.enums import EXPERIMENT_SOURCES, MARKS, MODES, WEIGHTINGS
from touchstone.v1 import (
    call_pb2,
    comparison_pb2,
    dataset_pb2,
    dataset_service_pb2,
    decision_pb2,
    digest_pb2,
    metric_pb2,
    noise_pb2,
    results_service_pb2,
    watch_pb2,
)
from touchstone_client import requests, specs
from touchstone_client.asynchronous.calls import Calls
from touchstone_client.errors import NotFoundError
from touchstone_client.files import unfinished
from touchstone_client.requests import Comparison, Export, ItemFilters, RunFilters


class Results(Calls):
    """Figures of single jobs and of all jobs together."""

    async def result(self, job_id: str) -> metric_pb2.JobResult:
        """What the job has measured so far; final once `sealed`."""
        request = results_service_pb2.GetJobResultRequest(job_id=job_id)
        answer = await self._ask(request, results_service_pb2.GetJobResultResponse)
        return answer.result

    async def mark(self, job_id: str, mark: str, reason: str = "", superseded_by: str = "") -> metric_pb2.JobResult:
        """Takes a run out of rankings ("invalidated", "superseded") or back in ("valid")."""
        request = results_service_pb2.MarkRunRequest(
            job_id=job_id, mark=MARKS[mark], reason=reason, superseded_by=superseded_by
        )
        answer = await self._ask(request, results_service_pb2.MarkRunResponse)
        return answer.result

    async def items(
        self, job_id: str, *, order: str = "item", **filters: Unpack[ItemFilters]
    ) -> AsyncIterator[results_service_pb2.StoredItem]:
        """Items with texts cut to 2 KB, in stable order; `order` is a word of `services.words.enums.ITEM_ORDERS`."""
        request = requests.list_items(job_id, filters, order=order)
        async for page in self._pages(request, results_service_pb2.ListItemsResponse):
            for found in page.items:
                yield found

    async def classes(self, job_id: str, task: str) -> list[results_service_pb2.ClassCount]:
        """How often each answer was read for each right answer of a task. Empty if these are many, or no texts."""
        request = results_service_pb2.ListItemsRequest(job_id=job_id, task=task, page_size=1, with_classes=True)
        answer = await self._ask(request, results_service_pb2.ListItemsResponse)
        return list(answer.classes)

    async def item(self, job_id: str, task: str, item: int, repeat: int = 0) -> results_service_pb2.StoredItem:
        """One item with whole texts."""
        request = results_service_pb2.GetItemRequest(job_id=job_id, task=task, item=item, repeat=repeat)
        answer = await self._ask(request, results_service_pb2.GetItemResponse)
        return answer.item

    async def annotate(
        self,
        job_id: str,
        task: str,
        item: int,
        verdict: str,
        *,
        repeat: int = 0,
        corrected_answer: str = "",
        note: str = "",
    ) -> results_service_pb2.StoredItem:
        """Stores a person's verdict on an answer: "golden", "fix" with the answer it should have been, "wrong"; "none"
        withdraws it."""
        request = requests.annotate(job_id, task, item, verdict, repeat, corrected_answer, note)
        answer = await self._ask(request, results_service_pb2.AnnotateItemResponse)
        return answer.item

    async def prefer(
        self,
        job_ids: Iterable[str],
        task: str,
        item: int,
        choice: str,
        *,
        preferred_job_id: str = "",
        repeat: int = 0,
        blind: bool = False,
    ) -> results_service_pb2.Preference:
        """Stores what you prefer of the jobs' answers to a row, named as the first of them numbers it: "better" with
        `preferred_job_id`, "tie", "all_bad"; "none" withdraws it."""
        request = requests.prefer(job_ids, task, item, choice, preferred_job_id, repeat, blind)
        answer = await self._ask(request, results_service_pb2.JudgeRowResponse)
        return answer.preference

    async def judges(self, job_id: str) -> list[results_service_pb2.JudgeRun]:
        """The jobs that judge a job's answers, at most 100, newest first. Their metrics are means of shares of the
        criteria's scales, 0 to 1: `services.words.rubrics.on_scale` converts them. What a judge found that compared
        two jobs is in `pairs`."""
        request = results_service_pb2.ListJudgesRequest(job_id=job_id)
        answer = await self._ask(request, results_service_pb2.ListJudgesResponse)
        return list(answer.judges)

    async def judgements(
        self, job_id: str, task: str, item: int, repeat: int = 0
    ) -> list[results_service_pb2.JudgeRun]:
        """`judges`, each with its judgements of one answer."""
        request = results_service_pb2.ListJudgesRequest(job_id=job_id, task=task, item=item, repeat=repeat)
        answer = await self._ask(request, results_service_pb2.ListJudgesResponse)
        return list(answer.judges)

    async def people_agreement(self, job_id: str) -> list[results_service_pb2.PeopleAgreement]:
        """How people agree with each other on a job's answers, for each rubric under which they rated: Krippendorff's
        alpha by criterion, which is unset without two people who rated the same answers."""
        request = results_service_pb2.ListJudgesRequest(job_id=job_id)
        answer = await self._ask(request, results_service_pb2.ListJudgesResponse)
        return list(answer.people)

    async def outside_judges(self, job_id: str) -> list[results_service_pb2.OutsideJudge]:
        """The judges outside Touchstone that have sent scores of a job's answers, by name. Their means are shares of
        the criteria's scales, 0 to 1."""
        request = results_service_pb2.ListJudgesRequest(job_id=job_id)
        answer = await self._ask(request, results_service_pb2.ListJudgesResponse)
        return list(answer.outside)

    async def unrated(
        self, job_id: str, rubric: Mapping[str, Any] | str | None = None, *, judge: str = "", page_size: int = 50
    ) -> AsyncIterator[results_service_pb2.AnswerToRate]:
        """A job's answers that you, or the named judge outside, have not rated under a rubric, in an order drawn at
        random, the same for everybody. Without a rubric, that of the job's experiment. Raises InvalidError for the
        rubric."""
        request = results_service_pb2.ListUnratedRequest(
            job_id=job_id, rubric=specs.rubric_of(rubric) if rubric else None, judge=judge, page_size=page_size
        )
        async for page in self._pages(request, results_service_pb2.ListUnratedResponse):
            for answer in page.answers:
                yield answer

    async def rate(
        self,
        job_id: str,
        rubric: Mapping[str, Any] | str | None,
        ratings: Iterable[results_service_pb2.Rating],
        *,
        judge: str = "",
    ) -> results_service_pb2.RateAnswersResponse:
        """Stores ratings of up to 1,000 answers: all or none. They are yours, or those of the named judge outside.
        Without a rubric, they are under that of the job's experiment. The same ratings again change nothing. Raises
        InvalidError, which names each wrong rating."""
        request = results_service_pb2.RateAnswersRequest(
            job_id=job_id, rubric=specs.rubric_of(rubric) if rubric else None, ratings=list(ratings), judge=judge
        )
        return await self._ask(request, results_service_pb2.RateAnswersResponse, requests.RATE_S)

    async def ratings(
        self, job_id: str, *, rubric_digest: str = "", rater: str = ""
    ) -> AsyncIterator[results_service_pb2.Rating]:
        """The ratings of a job's answers that apply, by answer and rater. Those with a `judge` are none of people's."""
        request = results_service_pb2.ListRatingsRequest(job_id=job_id, rubric_digest=rubric_digest, rater=rater)
        async for page in self._pages(request, results_service_pb2.ListRatingsResponse):
            for rating in page.ratings:
                yield rating

    async def side_by_side(
        self,
        job_ids: Iterable[str],
        *,
        only_job_id: str = "",
        diffs: bool = False,
        page_size: int = 20,
        **filters: Unpack[ItemFilters],
    ) -> AsyncIterator[results_service_pb2.ListSideBySideResponse]:
        """Answers of two to four jobs to the same rows, page by page; each page also has the jobs' figures.

        `filter` is a word of `specs.SIDE_BY_SIDE_FILTERS`; two of them apply to `only_job_id`. With `diffs` each answer
        is compared word by word with the first job's.
        """
        request = requests.side_by_side(job_ids, only_job_id, diffs, page_size, filters)
        async for page in self._pages(request, results_service_pb2.ListSideBySideResponse, requests.SIDE_BY_SIDE_S):
            yield page

    async def estimate(
        self, job_id: str, items: int = 0, concurrency: int = 0
    ) -> results_service_pb2.EstimateRunResponse:
        """The time and cost of a run on this many items, estimated from a job such as a pilot; 0 means all items, and
        as many calls at a time as in that job. StateError while the job has too few answers."""
        request = results_service_pb2.EstimateRunRequest(job_id=job_id, items=items, concurrency=concurrency)
        return await self._ask(request, results_service_pb2.EstimateRunResponse)

    async def compare(self, subjects: Iterable[str], **how: Unpack[Comparison]) -> comparison_pb2.CompareResponse:
        """Runs of several models on the same items. A subject is a job, a configuration or a model."""
        request = requests.compare(subjects, how)
        return await self._ask(request, comparison_pb2.CompareResponse, requests.COMPARE_S)

    async def leaderboard(
        self,
        suite: str,
        metric: str = "score",
        *,
        mode: str = "generate",
        limit: int = 0,
        item_set: str = "",
        endpoint: str = "",
        project_id: int = 0,
        weighting: str = "",
    ) -> results_service_pb2.GetLeaderboardResponse:
        """Configurations ranked within one item set, by the suite's own weighting unless one of
        `services.words.enums.WEIGHTINGS` is given."""
        request = results_service_pb2.GetLeaderboardRequest(
            suite=suite,
            metric=metric,
            mode=MODES[mode],
            limit=limit,
            item_set=item_set,
            endpoint=endpoint,
            project_id=project_id,
            weighting=WEIGHTINGS[weighting] if weighting else None,
        )
        return await self._ask(request, results_service_pb2.GetLeaderboardResponse)

    async def decisions(self, schedule_id: str = "") -> AsyncIterator[decision_pb2.Decision]:
        """Decisions, newest first, without their paths; only those that a schedule has started, if its id is given."""
        request = results_service_pb2.ListDecisionsRequest(page_size=50, schedule_id=schedule_id)
        async for page in self._pages(request, results_service_pb2.ListDecisionsResponse):
            for found in page.decisions:
                yield found

    async def decision(self, decision_id: str) -> decision_pb2.Decision:
        """A decision and what is known by now. `decision_id` is the id of either of its jobs."""
        request = results_service_pb2.GetDecisionRequest(decision_id=decision_id)
        answer = await self._ask(request, results_service_pb2.GetDecisionResponse)
        return answer.decision

    async def noise(self, job_ids: Iterable[str]) -> noise_pb2.Noise:
        """How much scores change when the same items are asked again, from finished jobs that asked the same."""
        request = results_service_pb2.GetNoiseRequest(job_ids=job_ids)
        answer = await self._ask(request, results_service_pb2.GetNoiseResponse, requests.COMPARE_S)
        return answer.noise

    async def digest(
        self, days: float = 7, end: datetime | None = None, schedule_id: str = "", project_id: int = 0
    ) -> digest_pb2.Digest:
        """What changed in the `days` before `end`, by default now: of each model and suite the newest run against the
        one before."""
        end = end or datetime.now(UTC)
        request = results_service_pb2.GetDigestRequest(schedule_id=schedule_id, project_id=project_id)
        request.end_at.FromDatetime(end.astimezone(UTC))
        request.begin_at.FromDatetime((end - timedelta(days=days)).astimezone(UTC))
        answer = await self._ask(request, results_service_pb2.GetDigestResponse, requests.COMPARE_S)
        return answer.digest

    async def read_watch(self, schedule_id: str) -> watch_pb2.Watch:
        """What the runs of a watch show. NotFoundError before the first one."""
        request = results_service_pb2.GetWatchRequest(schedule_id=schedule_id)
        answer = await self._ask(request, results_service_pb2.GetWatchResponse)
        return answer.watch

    async def replay_result(self, job_id: str) -> noise_pb2.Replay:
        """How many answers changed in a replay. NotFoundError before its end, StateError for another job."""
        request = results_service_pb2.GetReplayRequest(job_id=job_id)
        answer = await self._ask(request, results_service_pb2.GetReplayResponse, requests.COMPARE_S)
        return answer.replay

    async def experiments(self) -> AsyncIterator[results_service_pb2.Experiment]:
        """Experiments, newest first; for admins."""
        request = results_service_pb2.ListExperimentsRequest(page_size=100)
        async for page in self._pages(request, results_service_pb2.ListExperimentsResponse):
            for found in page.experiments:
                yield found

    async def experiment(
        self, name: str, source: str = "", judge: str = ""
    ) -> results_service_pb2.GetExperimentResponse:
        """Models and prompts of an experiment ranked by the scores of `source`, a word of
        `services.words.enums.EXPERIMENT_SOURCES`; `judge` is "endpoint/model". For admins."""
        request = results_service_pb2.GetExperimentRequest(
            name=name, source=EXPERIMENT_SOURCES[source] if source else None, judge=judge
        )
        return await self._ask(request, results_service_pb2.GetExperimentResponse)

    async def experiment_definition(self, name: str) -> dict[str, Any]:
        """The definition of an experiment, as `run_experiment` takes it: with the models that have jobs, and of any
        size. Judges are not a part of it. For admins. Raises NotFoundError where its own scenarios were deleted."""
        experiment = (await self.experiment(name)).experiment
        rows: list[dataset_pb2.DatasetRow] = []
        if needed := stored_definition.rows_needed(experiment):
            request = dataset_service_pb2.ListDatasetRowsRequest(
                dataset_id=experiment.dataset_id, page_size=500, whole=True
            )
            async for page in self._pages(request, dataset_service_pb2.ListDatasetRowsResponse):
                rows += page.rows
                if len(rows) >= needed:
                    break
        try:
            return stored_definition.value(experiment, rows)
        except stored_definition.LostScenariosError as error:
            raise NotFoundError(str(error), grpc.StatusCode.NOT_FOUND) from error

    async def experiment_runs(
        self, name: str, **filters: Unpack[RunFilters]
    ) -> AsyncIterator[results_service_pb2.ExperimentRun]:
        """What an experiment asked and what was answered, model by model; for admins."""
        request = requests.experiment_runs(name, filters)
        async for page in self._pages(request, results_service_pb2.ListExperimentRunsResponse):
            for found in page.runs:
                yield found

    async def overview(
        self, suite: str = "", days: int = 0, metric: str = "", project_id: int = 0
    ) -> results_service_pb2.GetOverviewResponse:
        """Figures over all jobs."""
        request = results_service_pb2.GetOverviewRequest(suite=suite, days=days, metric=metric, project_id=project_id)
        return await self._ask(request, results_service_pb2.GetOverviewResponse)

    async def trends(
        self, suite: str, metric: str = "", days: int = 0, *, model: str = "", mode: str = "", project_id: int = 0
    ) -> list[results_service_pb2.Trend]:
        """Scores over time, one series per configuration."""
        request = results_service_pb2.ListTrendsRequest(
            suite=suite,
            metric=metric,
            days=days,
            model=model,
            mode=MODES[mode] if mode else None,
            project_id=project_id,
        )
        answer = await self._ask(request, results_service_pb2.ListTrendsResponse)
        return list(answer.trends)

    async def configurations(
        self, model: str = "", named: bool = False, project_id: int = 0
    ) -> AsyncIterator[results_service_pb2.Configuration]:
        """What leaderboards rank, newest run first."""
        request = results_service_pb2.ListConfigurationsRequest(
            model=model, named=named, project_id=project_id, page_size=100
        )
        async for page in self._pages(request, results_service_pb2.ListConfigurationsResponse):
            for found in page.configurations:
                yield found

    async def name_configuration(
        self, configuration: str, name: str | None = None, alias: str | None = None
    ) -> results_service_pb2.Configuration:
        """Sets the name and alias of a configuration; None leaves one unchanged, an empty text removes it."""
        request = results_service_pb2.NameConfigurationRequest(configuration=configuration, name=name, alias=alias)
        answer = await self._ask(request, results_service_pb2.NameConfigurationResponse)
        return answer.configuration

    async def model_calls(
        self, days: int = 30, *, user: str = "", endpoint: str = "", model: str = ""
    ) -> AsyncIterator[call_pb2.Call]:
        """Calls through `/v1/chat/completions` and `/v1/responses`, newest first."""
        request = results_service_pb2.ListCallsRequest(owner=user, endpoint=endpoint, model=model, page_size=1000)
        request.started_after.FromDatetime(datetime.now(UTC) - timedelta(days=days))
        async for page in self._pages(request, results_service_pb2.ListCallsResponse):
            for call in page.calls:
                yield call

    async def call_usage(self, days: int = 30, *, user: str = "") -> list[call_pb2.CallUsage]:
        """Sums of those calls for each user and model, at most 500, those that cost most first."""
        request = results_service_pb2.GetCallUsageRequest(owner=user)
        request.started_after.FromDatetime(datetime.now(UTC) - timedelta(days=days))
        answer = await self._ask(request, results_service_pb2.GetCallUsageResponse)
        return list(answer.usage)

    async def recorded_runs(self) -> AsyncIterator[call_pb2.RecordedRun]:
        """The user's open recorded runs, newest first."""
        request = results_service_pb2.ListRecordedRunsRequest(page_size=1000)
        async for page in self._pages(request, results_service_pb2.ListRecordedRunsResponse):
            for run in page.runs:
                yield run

    async def delete_recorded_run(self, name: str) -> call_pb2.RecordedRun:
        """Deletes what the user's open recorded run of that name has recorded."""
        request = results_service_pb2.DeleteRecordedRunRequest(name=name)
        answer = await self._ask(request, results_service_pb2.DeleteRecordedRunResponse)
        return answer.run

    async def export(self, kind: str, format: str, **what: Unpack[Export]) -> AsyncIterator[bytes]:
        """A file's bytes in pieces: "jobs", "metrics" or "items" as "csv", "json", "jsonl" or "parquet"; "batch",
        OpenAI's batch output, as "jsonl" or "csv"; "golden", examples for fine-tuning, as "jsonl"."""
        request = requests.export(kind, format, what)
        async for response in self._stream(request, results_service_pb2.ExportResponse, requests.EXPORT_S):
            yield response.data

    async def export_file(self, path: str | Path, kind: str, format: str, **what: Unpack[Export]) -> int:
        """Writes the export to a file, which appears when it is whole. Returns its bytes."""
        with unfinished(Path(path)) as file:
            return sum([file.write(piece) async for piece in self.export(kind, format, **what)])
