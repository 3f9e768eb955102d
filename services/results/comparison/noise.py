"""How much a model's scores change when the same items are asked again, from finished runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from services.errors import InvalidRequestError
from services.results.comparison import asked_again, common_items
from services.results.comparison.asked_again import Scores
from services.results.comparison.selection import candidates, comparability, runs, subjects
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run, listed
from services.results.statistics import reasking
from services.results.statistics.metric_values import Floats, Ints
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.words.refusals import counted, too_large
from touchstone.v1 import noise_pb2, results_service_pb2

_NOTHING_TWICE = (
    "No item was asked twice. Name another finished job of the same model and items, or a job with several answers per "
    "item."
)


def get_noise(
    connection: Connection, request: results_service_pb2.GetNoiseRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.GetNoiseResponse:
    """Raises InvalidRequestError for jobs that did not ask the same, or no item twice; NotFoundError for a job that is
    unknown or has no finished run."""
    asked = sorted({job_id.strip() for job_id in request.job_ids} - {""})
    if not asked:
        raise InvalidRequestError("Name at least one finished job.", "job_ids")
    if len(asked) > subjects.MOST:
        raise InvalidRequestError(too_large("The measurement", len(asked), subjects.MOST, "jobs"), "job_ids")
    suite = subjects.require_jobs(connection, asked, visible)
    found = runs.load(connection, {job_id: job_id for job_id in asked})
    found.sort(key=lambda run: (run.job.created_at.ToNanoseconds(), run.job_id))
    compared = comparability.compare(found)
    require_same(compared)
    common_items.choose(connection, compared)
    plans = [compared.plans[task][0] for task in compared.tasks]
    scores = asked_again.read(connection, found, plans, compared.weighting)
    if not scores.tasks:
        raise InvalidRequestError("These jobs have no items in common that have scores of their own.", "job_ids")
    if len(found) == 1 and scores.scores.shape[1] == 1:
        raise InvalidRequestError(_NOTHING_TWICE, "job_ids")
    made = noise_pb2.Noise(suite=suite, servings=_servings(found, scores), notes=_notes(compared, scores))
    places = _places(found)
    made.total.CopyFrom(figures(_by_serving(scores.scores, places), scores.weights, scores.clusters))
    for task in scores.tasks if len(scores.tasks) > 1 else ():
        own = figures(_by_serving(task.scores, places), task.weights, task.clusters)
        own.task, own.title = task.plan.task, task.plan.title or task.plan.task
        made.tasks.append(own)
    return results_service_pb2.GetNoiseResponse(noise=made)


def figures(servings: Sequence[reasking.Serving], weights: Floats, clusters: Ints) -> noise_pb2.NoiseFigures:
    """Without the task."""
    made = noise_pb2.NoiseFigures(items=len(weights))
    for field, flips in (
        (made.reasking, reasking.flips_of_reasking(servings, clusters)),
        (made.servings, reasking.flips_of_servings(servings, clusters)),
    ):
        if flips is not None:
            field.CopyFrom(flips_message(flips))
    parts = reasking.variance_parts(servings, weights)
    if parts is not None:
        made.variance.items = parts.items
        for name in ("reasking", "runs", "servings", "interaction"):
            if (value := getattr(parts, name)) is not None:
                setattr(made.variance, name, value)
    floor = reasking.floor(servings, weights)
    if floor is not None:
        made.floor = floor
    return made


def flips_message(found: reasking.Flips) -> noise_pb2.Flips:
    return noise_pb2.Flips(share=found.share, low=found.low, high=found.high)


def require_same(compared: Comparability) -> None:
    """Raises InvalidRequestError for runs that did not ask the same in the same way."""
    for place in range(1, len(compared.runs)):
        if why := compared.reason(0, place, compared.tasks):
            one, other = compared.runs[0].job_id, compared.runs[place].job_id
            raise InvalidRequestError(f"Jobs {one} and {other} did not ask the same: {why}.", "job_ids")


def _places(found: Sequence[Run]) -> Mapping[tuple[str, str], list[int]]:
    """The runs of each model at an endpoint, the serving with most runs first."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, run in enumerate(found):
        places.setdefault((run.job.spec.model, run.job.spec.endpoint), []).append(place)
    return dict(sorted(places.items(), key=lambda one: (-len(one[1]), one[0])))


def _by_serving(scores: Floats, places: Mapping[tuple[str, str], list[int]]) -> list[reasking.Serving]:
    return [[scores[place] for place in members] for members in places.values()]


def _servings(found: Sequence[Run], scores: Scores) -> Iterator[noise_pb2.NoiseServing]:
    means = scores.scores.mean(axis=1) @ scores.weights
    repeats = scores.scores.shape[1]
    for (model, endpoint), members in _places(found).items():
        yield noise_pb2.NoiseServing(
            model=model,
            endpoint=endpoint,
            runs=[
                noise_pb2.NoiseRun(job_id=found[place].job_id, repeats=repeats, score=means[place]) for place in members
            ],
        )


def _notes(compared: Comparability, scores: Scores) -> Iterator[str]:
    counted_tasks = {task.plan.task for task in scores.tasks}
    without = [compared.title(task) for task in compared.tasks if task not in counted_tasks]
    if without:
        yield f"Left out because single items have no scores in all runs: {listed(without)}."
    if compared.left_out:
        yield f"Left out because not every run has it: {counted(len(compared.left_out), 'task')}."
    least = sum(min(run.plans[task].items for run in compared.runs) for task in counted_tasks)
    if left := least - len(scores.weights):
        yield f"{counted(left, 'item')} without a new answer in every run left out."
    for (model, endpoint), members in _places(compared.runs).items():
        own = [compared.runs[place] for place in members]
        if len({run.configuration for run in own}) > 1:
            settings = candidates.differing_settings([run.job for run in own])
            told = listed([f"{run.job_id} ({', '.join(words)})" for run, words in zip(own, settings, strict=True)])
            yield f"The jobs of {model}@{endpoint} differ in more than time: {told}."
        served = sorted({name for run in own for name in run.result.served_models})
        if len(served) > 1:
            yield f"{model}@{endpoint} answered as {listed(served)}."
