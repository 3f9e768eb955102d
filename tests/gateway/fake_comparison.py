"""Comparisons of the fake results service: runs by model, with figures that hang on nothing but their names."""

from __future__ import annotations

from itertools import combinations

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.evaluator.suites import shipped
from services.results.runs.configurations import JOB_ID
from services.words import refusals
from services.words.jobs import suite_of
from tests.gateway import fake_data
from tests.gateway.fake_figures import name_of
from tests.gateway.fake_world import World
from touchstone.v1 import comparison_pb2, job_pb2, metric_pb2, noise_pb2, results_service_pb2

_KNOWN = ("score", "accuracy", "f1")
_ITEMS = 400
_TASK = "sst2"


def compare(world: World, request: comparison_pb2.CompareRequest) -> comparison_pb2.CompareResponse:
    """Every pair of runs, the better one first. "same" models are all alike, "twisted" ones do not compare."""
    subjects = sorted({*request.subjects, request.baseline} - {""})
    if len(subjects) < 2:
        raise InvalidRequestError("Name at least two runs to compare.", "subjects")
    metrics = list(request.metrics) or ["score"]
    for metric in metrics:
        if metric not in _KNOWN:
            raise InvalidRequestError(f"No task has the metric {metric!r}. Metrics: {', '.join(_KNOWN)}.", "metrics")
    for subject in subjects:
        if subject in world.jobs and request.suite not in ("", suite_of(world.jobs[subject].spec)):
            raise InvalidRequestError(f"Job {subject} did not run {request.suite}.", "suite")
    ran = sorted({suite_of(world.jobs[subject].spec) for subject in subjects if subject in world.jobs})
    if not request.suite and len(ran) > 1:
        names = " and ".join(map(repr, ran))
        raise InvalidRequestError(f"The jobs ran {names}. Only runs of one suite can be compared.", "suite")
    tasks = [task.task for task in shipped()["mmlu"].announced().tasks] if ran == ["mmlu"] else [_TASK]
    runs = [_run(world, subject, request.suite, metrics, tasks) for subject in subjects]
    runs.sort(key=lambda run: -run.scores[0].mean)
    answer = comparison_pb2.CompareResponse(
        suite=request.suite,
        mode=request.mode,
        runs=runs,
        metrics=metrics,
        items=_ITEMS,
        margin=request.margin or 0.01,
        alpha=request.alpha or 0.05,
        recommendations=[f"{runs[0].model} is shown to be better than {runs[-1].model}."],
        notes=["Invented."],
    )
    answer.runs[0].rank_low, answer.runs[0].rank_high = 1, 1
    pairs = [
        (a, b) for a, b in combinations(runs, 2) if not request.baseline or request.baseline in (a.subject, b.subject)
    ]
    for task in ("", *tasks):
        answer.differences.extend(_difference(a, b, task, metrics[0], len(pairs)) for a, b in pairs)
    if len(runs) > 2:
        answer.omnibus.add(
            metric=metrics[0], test="Cochran's Q", statistic=9.5, degrees_of_freedom=2, p_value=0.01, n=400
        )
    return answer


def noise(world: World, request: results_service_pb2.GetNoiseRequest) -> results_service_pb2.GetNoiseResponse:
    """Of jobs that exist, of one serving each."""
    if not request.job_ids:
        raise InvalidRequestError("Name at least one finished job.", "job_ids")
    for job_id in request.job_ids:
        if job_id not in world.jobs:
            raise NotFoundError(refusals.not_found("Benchmark job", job_id))
    jobs = [world.jobs[job_id] for job_id in sorted(request.job_ids)]
    found = noise_pb2.Noise(suite=suite_of(jobs[0].spec), notes=["Invented."])
    found.total.MergeFrom(
        noise_pb2.NoiseFigures(
            items=_ITEMS,
            reasking=noise_pb2.Flips(share=0.021, low=0.014, high=0.031),
            variance=noise_pb2.VarianceParts(items=0.19, reasking=0.01, runs=0.0),
            floor=0.0062,
        )
    )
    for job in jobs:
        serving = found.servings.add(model=job.spec.model, endpoint=job.spec.endpoint)
        serving.runs.add(job_id=job.job_id, repeats=1, score=0.75)
    return results_service_pb2.GetNoiseResponse(noise=found)


def replay(world: World, request: results_service_pb2.GetReplayRequest) -> results_service_pb2.GetReplayResponse:
    """Of any replay."""
    job = world.jobs.get(request.job_id)
    if job is None:
        raise NotFoundError(refusals.not_found("Benchmark job", request.job_id))
    if not job.spec.replays_job_id:
        raise ConflictError(f"Job {job.job_id} is not a replay. Start one: touchstone replay {job.job_id}.")
    found = noise_pb2.Replay(
        job_id=job.job_id,
        replayed_job_id=job.spec.replays_job_id,
        items=100,
        flips=noise_pb2.Flips(share=0.04, low=0.016, high=0.098),
        higher=1,
        lower=3,
        score_then=0.75,
        score_now=0.73,
        measured=noise_pb2.Flips(share=0.02, low=0.01, high=0.04),
        measured_runs=3,
        beyond=0.02,
        beyond_low=-0.01,
        beyond_high=0.05,
        verdict=noise_pb2.REPLAY_VERDICT_WITHIN_NOISE,
        words=["Invented."],
    )
    return results_service_pb2.GetReplayResponse(replay=found)


def _run(world: World, subject: str, suite: str, metrics: list[str], tasks: list[str]) -> comparison_pb2.ComparedRun:
    completed = job_pb2.Job.STATE_COMPLETED
    found = [
        job
        for job in world.jobs.values()
        if subject in (job.job_id, job.spec.model) and job.state == completed and suite in ("", suite_of(job.spec))
    ]
    if not found and JOB_ID.fullmatch(subject):
        if subject not in world.jobs:
            raise NotFoundError(refusals.not_found("Benchmark job", subject))
        raise NotFoundError(f"Job {subject} has no finished run yet. Compare it when it is finished.")
    if not found:
        raise NotFoundError(
            f"{subject!r} has no complete run of {suite} in generate mode that counts. Run it first, retry the missing "
            "items, or name a job."
        )
    job = max(found, key=lambda one: one.created_at.ToNanoseconds())
    mean = 0.7 if job.spec.model.startswith("same") else 0.5 + sum(job.spec.model.encode()) % 400 / 1000
    return comparison_pb2.ComparedRun(
        subject=subject,
        job_id=job.job_id,
        model=job.spec.model,
        endpoint=job.spec.endpoint,
        configuration=job.receipt.configuration,
        name=name_of(world, job).name,
        scores=[fake_data.metric(metric, mean, _ITEMS) for metric in metrics],
        tasks=[metric_pb2.TaskResult(task=t, metrics=[fake_data.metric("accuracy", mean, _ITEMS)]) for t in tasks],
        completed_at=job.created_at,
    )


def _difference(
    a: comparison_pb2.ComparedRun, b: comparison_pb2.ComparedRun, task: str, metric: str, pairs: int
) -> comparison_pb2.Difference:
    found = comparison_pb2.Difference(
        a=a.job_id,
        b=b.job_id,
        task=task,
        title="SST-2" if task == _TASK else task,
        metric="accuracy" if task else metric,
        family="tasks" if task else "primary",
        n=_ITEMS,
        words=f"{a.model} and {b.model} are compared.",
    )
    if "twisted" in (a.model[:7], b.model[:7]):
        found.verdict, found.reason = comparison_pb2.VERDICT_NOT_COMPARABLE, "the prompts differ"
        return found
    found.difference = a.scores[0].mean - b.scores[0].mean
    found.low, found.high, found.test = found.difference - 0.02, found.difference + 0.02, "exact McNemar"
    found.p_value = 0.004 if found.difference else 0.21
    found.verdict = comparison_pb2.VERDICT_BETTER if found.difference else comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN
    if pairs > 1:
        found.p_adjusted, found.correction = min(1.0, found.p_value * pairs), "holm"
    return found
