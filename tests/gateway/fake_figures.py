"""Overview, trends, configurations and marks of the fake results service."""

from __future__ import annotations

from services import rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.words import phrases, refusals
from services.words.enums import MARKS
from services.words.jobs import is_finished, suite_of
from services.words.suites import unknown_suite
from tests.gateway import fake_data, fake_pages
from tests.gateway.fake_world import NO_REFERENCE, World
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2

_COMPLETED = job_pb2.Job.STATE_COMPLETED
METRICS = ("score", "accuracy", "f1", "matthews_correlation")
"""Those of every fake run."""


def list_jobs(
    world: World, request: results_service_pb2.ResultsServiceListJobsRequest
) -> results_service_pb2.ResultsServiceListJobsResponse:
    found = [
        job
        for job in world.jobs.values()
        if job.job_id not in world.unstored
        and request.model in ("", job.spec.model)
        and request.suite in ("", suite_of(job.spec))
        and (not request.datasets or job.spec.HasField("dataset"))
        and request.endpoint in ("", job.spec.endpoint)
        and request.owner in ("", job.owner)
        and request.project_id in (0, job.spec.project_id)
        and request.model_query.lower() in job.spec.model.lower()
        and request.created_after.ToNanoseconds() <= job.created_at.ToNanoseconds()
        and (not request.states or job.state in request.states)
    ]
    if not found:
        require_suite(request.suite, world)
    found.sort(key=lambda job: -job.created_at.ToNanoseconds())
    page, token = fake_pages.page(request, found, 20)
    scores = [_scores(world, job) for job in page] if request.with_scores else []
    answer = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[world.stale.get(job.job_id, job) for job in page], next_page_token=token, scores=scores
    )
    if not request.without_counts:
        answer.total_size = len(found)
        answer.completed = sum(job.state == _COMPLETED for job in found)
        answer.finished = sum(is_finished(job) for job in found)
    return answer


def get_job(
    world: World, request: results_service_pb2.ResultsServiceGetJobRequest, job: job_pb2.Job
) -> results_service_pb2.ResultsServiceGetJobResponse:
    answer = results_service_pb2.ResultsServiceGetJobResponse(job=job)
    own = job.created_at.ToNanoseconds(), job.job_id
    same = {
        (one.created_at.ToNanoseconds(), one.job_id): one
        for one in world.jobs.values()
        if request.with_runs_around
        and job.receipt.configuration
        and one.state == _COMPLETED
        and one.receipt.configuration == job.receipt.configuration
        and suite_of(one.spec) == suite_of(job.spec)
    }
    if before := [key for key in same if key < own]:
        answer.previous.CopyFrom(same[max(before)])
    if after := [key for key in same if key > own]:
        answer.following.CopyFrom(same[min(after)])
    return answer


def require_suite(suite: str, world: World) -> None:
    """As the service refuses what nobody ran and no evaluator announced."""
    known = [announced.suite for announced in fake_data.suites(world.suites)]
    if suite and not suite.startswith("ds_") and suite not in known:
        raise unknown_suite(known)


def _scores(world: World, job: job_pb2.Job) -> results_service_pb2.JobScores:
    result = world.results.get(job.job_id, metric_pb2.JobResult())
    named = name_of(world, job)
    scores = results_service_pb2.JobScores(
        job_id=job.job_id, not_ranked_reason=result.not_ranked_reason, name=named.name, alias=named.alias
    )
    if result.sealed and result.not_ranked_reason == NO_REFERENCE:
        scores.averages.add(metric="score", undefined_reason=NO_REFERENCE)
    elif result.sealed:
        scores.averages.extend(fake_data.averages(result))
    return scores


def name_of(world: World, job: job_pb2.Job) -> results_service_pb2.Configuration:
    return world.names.get(job.receipt.configuration, results_service_pb2.Configuration())


def overview(world: World, request: results_service_pb2.GetOverviewRequest) -> results_service_pb2.GetOverviewResponse:
    found = [job for job in world.jobs.values() if request.suite in ("", job.spec.suite.suite)]
    if not found:
        require_suite(request.suite, world)
    completed = [job for job in found if job.state == _COMPLETED]
    answer = results_service_pb2.GetOverviewResponse(
        total_jobs=len(found),
        completed_jobs=len(completed),
        complete_jobs=sum(not job.incomplete for job in completed),
        failed_jobs=sum(job.state == job_pb2.Job.STATE_FAILED for job in found),
        cancelled_jobs=sum(job.state == job_pb2.Job.STATE_CANCELLED for job in found),
        models=len({job.spec.model for job in completed if not job.baseline}),
    )
    if completed and request.metric in METRICS:
        answer.mean, answer.runs_with_metric = 0.8125, len(completed)
        answer.means.add(suite="glue", mode=suite_pb2.MODE_LOGLIKELIHOOD, mean=0.8125, runs=len(completed))
        answer.latest.CopyFrom(max(completed, key=lambda job: job.finished_at.ToNanoseconds()))
    return answer


def trends(world: World, request: results_service_pb2.ListTrendsRequest) -> results_service_pb2.ListTrendsResponse:
    answer = results_service_pb2.ListTrendsResponse()
    for job in world.jobs.values():
        if job.state != _COMPLETED or job.spec.suite.suite != request.suite or request.metric not in METRICS:
            continue
        if job.incomplete:
            continue  # it does not rank
        trend = answer.trends.add(
            configuration=job.receipt.configuration,
            name=name_of(world, job).name,
            model=job.spec.model,
            endpoint=job.spec.endpoint,
            item_set=job.item_set,
            subset=job.subset,
            baseline=job.baseline,
        )
        score = world.results[job.job_id].suite_score
        trend.points.add(job_id=job.job_id, completed_at=job.finished_at, score=score)
    return answer


def configurations(
    world: World, request: results_service_pb2.ListConfigurationsRequest
) -> results_service_pb2.ListConfigurationsResponse:
    """Those of `names`, and of every completed job."""
    found = [
        one
        for one in (_known(world) | world.names).values()
        if request.model in ("", one.model) and (one.name or one.alias or not request.named)
    ]
    if request.project_id:
        jobs = [job for job in world.jobs.values() if job.spec.project_id == request.project_id]
        theirs = {job.receipt.configuration for job in jobs}
        found = [one for one in found if one.configuration in theirs]
    page, token = fake_pages.page(request, found, 100)
    return results_service_pb2.ListConfigurationsResponse(configurations=page, next_page_token=token)


def _known(world: World) -> dict[str, results_service_pb2.Configuration]:
    known: dict[str, results_service_pb2.Configuration] = {}
    for job in world.jobs.values():
        if job.state != _COMPLETED or job.incomplete:
            continue
        one = known.setdefault(
            job.receipt.configuration, results_service_pb2.Configuration(configuration=job.receipt.configuration)
        )
        one.model, one.endpoint, one.suite, one.job_id = (
            job.spec.model,
            job.spec.endpoint,
            suite_of(job.spec),
            job.job_id,
        )
        one.run_count += 1
        one.last_run_at.CopyFrom(job.finished_at)
    return known


def name_configuration(
    world: World, request: results_service_pb2.NameConfigurationRequest
) -> results_service_pb2.NameConfigurationResponse:
    known = _known(world) | world.names
    if request.configuration not in known:
        raise NotFoundError(
            f"{refusals.not_found('Configuration', request.configuration)}. Use a hash from a leaderboard."
        )
    named = world.names.setdefault(request.configuration, known[request.configuration])
    if request.HasField("name"):
        named.name = request.name
    if request.HasField("alias"):
        for other in world.names.values():
            other.alias = "" if other.alias == request.alias else other.alias
        named.alias = request.alias
    return results_service_pb2.NameConfigurationResponse(configuration=named)


def mark_run(world: World, request: results_service_pb2.MarkRunRequest) -> results_service_pb2.MarkRunResponse:
    if request.job_id not in world.jobs:
        raise NotFoundError(refusals.not_found("Benchmark job", request.job_id))
    job, caller = world.jobs[request.job_id], rpc.identity()
    if not caller.is_admin and caller.user != job.owner:
        raise PermissionDeniedError(refusals.not_yours("Job", job.job_id, job.owner, "mark it"))
    if job.state in phrases.ENDED_EARLY:
        how = phrases.ENDED_EARLY[job.state]
        raise ConflictError(f"Job {job.job_id} {how}, so no leaderboard shows it and there is nothing to mark.")
    if job.state != _COMPLETED:
        raise ConflictError(f"Job {job.job_id} is not finished. Mark it when it is.")
    if request.mark == results_service_pb2.RUN_MARK_SUPERSEDED:
        _check_successor(world, request)
    result = world.results[job.job_id]
    result.mark = "" if request.mark == results_service_pb2.RUN_MARK_VALID else MARKS.of(request.mark)
    result.mark_reason = request.reason if result.mark else ""
    result.superseded_by = request.superseded_by
    by = f" by job {request.superseded_by}" if request.superseded_by else ""
    result.not_ranked_reason = f"the run was {result.mark}{by}: {request.reason.rstrip('.')}" if result.mark else ""
    return results_service_pb2.MarkRunResponse(result=result)


def _check_successor(world: World, request: results_service_pb2.MarkRunRequest) -> None:
    by = request.superseded_by
    if not by or by == request.job_id:
        raise InvalidRequestError("Name the run that replaces it.", "superseded_by")
    if by not in world.jobs:
        missing = refusals.not_found("Benchmark job", by)
        raise InvalidRequestError(f"{missing}. Name a finished run.", "superseded_by")
    if world.jobs[by].state != _COMPLETED:
        raise InvalidRequestError(f"Job {by} is not finished. Name a finished run.", "superseded_by")
    if world.results[by].mark:
        why = world.results[by].not_ranked_reason
        raise InvalidRequestError(f"Job {by} is itself not counted: {why}. Name another run.", "superseded_by")
