"""An experiment's leaderboard: each model with each prompt."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from services.errors import InvalidRequestError
from services.results.experiments import answers, scores, stored
from services.results.experiments.answers import Asked, Said
from services.results.experiments.scores import Scores
from services.results.experiments.stored import Stored
from services.results.judging import ratings
from services.results.paired.scenario_differences import rank_ranges
from services.results.runs import job_reads
from services.results.statistics.metric_values import Ints
from services.results.statistics.scenario_means import Mean
from services.results.storage.database import Connection
from services.words import refusals, rubrics
from touchstone.v1 import metric_pb2
from touchstone.v1 import results_service_pb2 as pb

JUDGE, PEOPLE, COMBINED = (
    pb.GetExperimentRequest.SOURCE_JUDGE,
    pb.GetExperimentRequest.SOURCE_PEOPLE,
    pb.GetExperimentRequest.SOURCE_COMBINED,
)


MOST_ROWS = 2_000
"""Of a board: more would not fit into a gRPC message."""


def get_experiment(connection: Connection, request: pb.GetExperimentRequest) -> pb.GetExperimentResponse:
    """Raises NotFoundError, and InvalidRequestError for a judge that has scored no answer."""
    experiment = stored.find(connection, request.name)
    asked = answers.asked(connection, experiment)
    marked = job_reads.uncounted(connection, [job.job_id for job in experiment.jobs])
    uncounted = [place for place, job in enumerate(experiment.jobs) if job.job_id in marked]
    told = answers.ratings(connection, experiment)
    judges = {
        name: said for name, said in answers.judged(connection, experiment, asked, told).items() if said.scored.any()
    }
    if request.judge and request.judge not in judges:
        raise InvalidRequestError(_no_judge(request.judge, list(judges)), "judge")
    judge = request.judge or next(iter(judges), "")
    judged = judges.get(judge) or answers.nothing(experiment)
    source = request.source or (JUDGE if judge else PEOPLE)
    people = answers.nothing(experiment) if source == JUDGE else answers.rated(experiment, told)
    for said in (judged, people):
        said.shares[:, uncounted] = np.nan
    shape = len(experiment.prompts), len(experiment.scenarios), experiment.repeats
    if source == COMBINED:
        found = scores.of_both(people, judged, asked, _order(experiment, people), shape)
    else:
        found = scores.of_one(people if source == PEOPLE else judged, shape)
    board = _Board(experiment, found, marked, _diversity(connection, experiment))
    said = judged if source == JUDGE else people
    response = pb.GetExperimentResponse(
        experiment=experiment.message(),
        source=source if len(found.ranked) else pb.GetExperimentRequest.SOURCE_UNSPECIFIED,
        judge="" if source == PEOPLE else judge,
        judges=judges,
        rows=board.rows(_figures(asked, said, judged, shape[0])),
        models=board.models(),
        uncounted_job_ids=[job.job_id for job in experiment.jobs if job.job_id in marked],
        live_judges=answers.live_judges(connection, experiment),
    )
    response.prompts_with_same_first, response.prompts_compared = board.same_first()
    return response


def _no_judge(name: str, judges: Sequence[str]) -> str:
    if not judges:
        return "No judge has scored answers of this experiment. Leave judge out."
    return refusals.not_valid(name, "judge", judges)


def _order(experiment: Stored, people: Said) -> Ints:
    """Each row's place (jobs, rows) in the order in which people rate. A job that nobody rated needs none."""
    order = np.zeros((len(experiment.jobs), experiment.rows), dtype=np.int64)
    for place in np.flatnonzero(people.scored.any(axis=1)).tolist():
        job = experiment.jobs[place]
        order[place] = _places(job.job_id, job.plan[0].task, experiment.rows)
    return order


@lru_cache(maxsize=stored.MOST_JOBS)
def _places(job_id: str, task: str, rows: int) -> Ints:
    """Those that have an answer are among them in their order."""
    drawn = ratings.drawn_order(job_id, [(task, item, 0) for item in range(rows)])
    places = np.empty(rows, dtype=np.int64)
    places[drawn] = np.arange(rows)
    return places


def _diversity(connection: Connection, experiment: Stored) -> dict[tuple[str, str], metric_pb2.TipDiversity]:
    """By job and prompt."""
    rows = connection.execute(
        "SELECT job_id, result FROM seals WHERE job_id IN (SELECT unnest($jobs::VARCHAR[]))",
        {"jobs": [job.job_id for job in experiment.jobs]},
    ).fetchall()
    found = ((job_id, metric_pb2.JobResult.FromString(blob)) for job_id, blob in rows)
    return {(job_id, one.prompt): one for job_id, result in found for one in result.tip_diversity}


def _figures(asked: Asked, said: Said, judged: Said, prompts: int) -> Iterator[dict[str, Any]]:
    """Of each row, by job and prompt: counts, speed and cost, by the names of ExperimentRow."""

    def split(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As (rows, answers)."""
        return values.reshape(len(values) * prompts, values.shape[1] // prompts)

    answered = split(asked.answered)
    latency, tokens, cost = (split(each) for each in (asked.latency_s, asked.output_tokens, asked.cost_usd))
    called = ~np.isnan(latency)
    seconds = np.where(called, latency, 0.0).sum(axis=1)
    with warnings.catch_warnings():
        # Rows without an answer have no median.
        warnings.simplefilter("ignore", RuntimeWarning)
        median = np.nan_to_num(np.nanmedian(latency, axis=1))
    columns = {
        "rows": np.full(len(answered), answered.shape[1]),
        "answered": answered.sum(axis=1),
        "errors": split(asked.failed).sum(axis=1),
        "scored": split(said.scored & asked.answered).sum(axis=1),
        "judge_failures": split(judged.failed).sum(axis=1),
        "latency_s": median,
        "tokens_per_s": np.where(called, tokens, 0.0).sum(axis=1) / np.where(seconds > 0, seconds, np.inf),
        "cost_usd": np.where(answered, cost, 0.0).sum(axis=1),
    }
    for values in zip(*(column.tolist() for column in columns.values()), strict=True):
        made = dict(zip(columns, values, strict=True))
        if not made["answered"] or np.isnan(made["cost_usd"]):
            del made["cost_usd"]
        yield made


@dataclass(frozen=True, slots=True)
class _Board:
    """The scores of rows, which are ordered by job, then by prompt."""

    experiment: Stored
    scores: Scores
    uncounted: Collection[str]
    """Jobs whose answers take no part."""
    diversity: Mapping[tuple[str, str], metric_pb2.TipDiversity]

    def rows(self, figures: Iterator[dict[str, Any]]) -> list[pb.ExperimentRow]:
        """By rank, those without scores last: the first `MOST_ROWS`."""
        made = [self._row(row, own) for row, own in enumerate(figures)]
        ranked = [made[row] for row in self.scores.ranked.tolist()]
        scored = set(self.scores.ranked.tolist())
        open_ = sum(row not in scored and one.job_id not in self.uncounted for row, one in enumerate(made))
        self._add_ranks(ranked, open_)
        self._add_differences(ranked[: self.scores.tested])
        return (ranked + [one for one in made if not one.rank])[:MOST_ROWS]

    def _row(self, row: int, figures: dict[str, Any]) -> pb.ExperimentRow:
        place, number = divmod(row, len(self.experiment.prompts))
        job, prompt = self.experiment.jobs[place], self.experiment.prompts[number]
        made = pb.ExperimentRow(
            job_id=job.job_id,
            endpoint=job.spec.endpoint,
            model=job.spec.model,
            prompt=prompt,
            composite=_interval(self.scores.means[0][row]),
            **figures,
        )
        for name, means in zip(rubrics.names(self.experiment.rubric), self.scores.means, strict=True):
            if name != rubrics.COMPOSITE and means[row] is not None:
                made.criteria.add(criterion=name, score=_interval(means[row]))
        if (found := self.diversity.get((job.job_id, prompt))) is not None:
            made.diversity.CopyFrom(pb.Interval(value=found.mean, low=found.low, high=found.high, n=found.scenarios))
        return made

    def _add_ranks(self, ranked: Sequence[pb.ExperimentRow], open_: int) -> None:
        """Equal rows have equal ranks. It is unknown how tested rows compare with those behind them, and with the
        `open_` rows that still lack scores: each of these may be better."""
        tested = self.scores.tested
        ranges = rank_ranges(tested, self.scores.differences)
        before, rank = None, 0
        for place, row in enumerate(ranked):
            rank = rank if row.composite.value == before else place + 1
            before = row.composite.value
            low, high = ranges[place] if place < tested else (1, tested)
            row.rank, row.rank_low, row.rank_high = rank, low, open_ + (len(ranked) if high == tested else high)

    def _add_differences(self, ranked: Sequence[pb.ExperimentRow]) -> None:
        found, first = self.scores.differences, self.scores.to_first
        # Pairs with the first row come first, in the order of the others.
        for place, row in enumerate(ranked[1:], start=1):
            if not np.isnan(found.adjusted[place - 1]):
                row.to_first.p_value = found.adjusted[place - 1]
                row.to_first.difference.CopyFrom(
                    pb.Interval(
                        value=first.values[place], low=first.low[place], high=first.high[place], n=first.n[place]
                    )
                )

    def models(self) -> list[pb.ExperimentModel]:
        made = []
        for place, job in enumerate(self.experiment.jobs):
            one = pb.ExperimentModel(
                job_id=job.job_id,
                endpoint=job.spec.endpoint,
                model=job.spec.model,
                mean=_interval(self.scores.of_models[place]),
            )
            known = [
                (mean.value, prompt)
                for mean, prompt in zip(self._of_job(place), self.experiment.prompts, strict=True)
                if mean is not None
            ]
            values = [value for value, _ in known]
            if known and not (len(known) > 1 and np.isclose(min(values), max(values), rtol=0, atol=1e-9)):
                one.best, one.best_prompt = max(known, key=lambda each: each[0])
                one.worst, one.worst_prompt = min(known, key=lambda each: each[0])
            made.append(one)
        return made

    def same_first(self) -> tuple[int, int]:
        """Of how many prompts the model with the highest mean is the first, and of how many there are scores of all
        models; 0 and 0 with fewer than two models."""
        means = [(mean.value, -place) for place, mean in enumerate(self.scores.of_models) if mean is not None]
        of_jobs = [self._of_job(place) for place in range(len(self.experiment.jobs))]
        compared = [
            [mean.value for mean in prompt if mean is not None]
            for prompt in zip(*of_jobs, strict=True)
            if all(mean is not None for mean in prompt)
        ]
        if len(of_jobs) < 2:
            return 0, 0
        if not means:
            return 0, len(compared)
        first = -max(means)[1]
        return sum(values[first] == max(values) for values in compared), len(compared)

    def _of_job(self, place: int) -> Sequence[Mean | None]:
        """The composites of its prompts."""
        prompts = len(self.experiment.prompts)
        return self.scores.means[0][place * prompts : (place + 1) * prompts]


def _interval(mean: Mean | None) -> pb.Interval | None:
    return None if mean is None else pb.Interval(value=mean.value, low=mean.low, high=mean.high, n=mean.n)
