"""What an experiment's leaderboard and heat map are drawn from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from services.experiments.reading import shipped_rubric
from services.gateway.pages.boards.table import level
from services.gateway.pages.display import formatting, scales
from services.gateway.pages.display.charts import Axis
from services.words import rubrics
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import ExperimentModel, ExperimentRow, GetExperimentResponse, Interval

_DECIDES = 0.05
"""P-values below it are shown bold."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number with what stands beneath and behind it."""

    text: str
    small: str = ""
    title: str = ""
    level: int = 0
    """The shade of a heat cell, 1–5; 0 without one."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the heat map: a model with a cell for each prompt, and its figures over all prompts."""

    model: ExperimentModel
    cells: list[Cell | None]
    spread: str


@dataclass(frozen=True)
class Board:
    """The figures of one answer of the results service."""

    found: GetExperimentResponse

    @property
    def rows(self) -> Sequence[ExperimentRow]:
        return self.found.rows

    @property
    def ranked(self) -> bool:
        return any(row.rank for row in self.rows)

    @cached_property
    def axis(self) -> Axis:
        """Holds the intervals of all rows."""
        known = [row.composite for row in self.rows if row.HasField("composite")]
        return Axis.around([100 * end for one in known for end in (one.low, one.value, one.high)])

    @property
    def first(self) -> ExperimentRow | None:
        """The row on top; None without scores."""
        return self.rows[0] if self.ranked else None

    @property
    def may_be_first(self) -> int:
        """Rows that the paired tests leave the first place, and those without scores, which nothing is known of."""
        return sum(row.rank_low == 1 for row in self.rows) + self.without_scores

    @property
    def without_scores(self) -> int:
        """Rows that nobody has scored, of jobs whose answers count."""
        uncounted = set(self.found.uncounted_job_ids)
        return sum(not row.rank and row.job_id not in uncounted for row in self.rows)

    @property
    def steadiest(self) -> ExperimentModel | None:
        """The model with the highest mean over prompts; None where there is nothing to compare."""
        known = [model for model in self.found.models if model.HasField("mean")]
        if len(known) < 2 or not self.found.prompts_compared:
            return None
        return max(known, key=lambda model: model.mean.value)

    @property
    def answered(self) -> int:
        return sum(row.answered for row in self.rows)

    @property
    def unscored(self) -> int:
        """Answers without a score of those whose scores rank."""
        return self.answered - sum(row.scored for row in self.rows)

    @property
    def judge_failures(self) -> int:
        return sum(row.judge_failures for row in self.rows)

    @property
    def has_costs(self) -> bool:
        return any(row.HasField("cost_usd") for row in self.rows)

    @property
    def has_diversity(self) -> bool:
        return any(row.HasField("diversity") for row in self.rows)

    def criteria(self, row: ExperimentRow) -> list[Cell]:
        """A cell for each criterion of the rubric, on the criterion's own scale."""
        known = {one.criterion: one.score for one in row.criteria}
        made = []
        for criterion in self.found.experiment.rubric.criteria:
            score, scale = known.get(criterion.name), scales.scale_of(self.found.experiment.rubric, criterion.name)
            if score is None:
                made.append(Cell(formatting.MISSING))
                continue
            mean, span = scales.mean(scale, score.value), scales.span(scale, score.low, score.high)
            made.append(Cell(mean, title=f"{criterion.name} {mean} {scales.unit(scale)}, 95 % CI {span}"))
        return made

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The name and the scale of each criterion."""
        rubric = self.found.experiment.rubric
        return [(one.name, scales.unit(scales.scale_of(rubric, one.name))) for one in rubric.criteria]

    def lines(self) -> list[Line]:
        """The heat map, in the order of the models. Shades are those of all its cells together."""
        by_place = {(row.job_id, row.prompt): row for row in self.rows}
        known = [row.composite.value for row in self.rows if row.HasField("composite")]
        low, high = min(known, default=0.0), max(known, default=0.0)
        prompts = self.found.experiment.prompts

        def cell(row: ExperimentRow | None) -> Cell | None:
            if row is None or not row.HasField("composite"):
                return None
            title = f"{formatting.shown(row.model)} with {row.prompt}: {interval(row.composite)}"
            return Cell(
                formatting.hundredths(row.composite.value), title=title, level=level(row.composite.value, low, high)
            )

        return [
            Line(
                model,
                [cell(by_place.get((model.job_id, prompt))) for prompt in prompts],
                formatting.hundredths(model.best - model.worst) if model.best_prompt else "",
            )
            for model in self.found.models
        ]


def interval(figure: Interval) -> str:
    """71.2, 95 % CI 66.0–76.1, n = 20."""
    span = formatting.span(figure.low, figure.high)
    return f"{formatting.hundredths(figure.value)}, 95 % CI {span}, n = {formatting.number(figure.n)}"


def difference(row: ExperimentRow) -> Cell:
    """The difference to the first row with its p-value; `level` is 1 where that decides."""
    if not row.HasField("to_first"):
        return Cell(formatting.MISSING)
    one, p = row.to_first.difference, row.to_first.p_value
    words = f"95 % CI {formatting.span(one.low, one.high)}, on {formatting.plural(one.n, 'common scenario')}"
    return Cell(formatting.change(one.value), f"p {formatting.p_value(p)}", words, int(p < _DECIDES))


def rating_address(job: job_pb2.Job, found: GetExperimentResponse) -> str:
    """Where a person rates the job's answers. A rubric that does not ship, and that no judge used, is not known
    there."""
    rubric = found.experiment.rubric
    known = rubric == shipped_rubric() or bool(job.spec.judges)
    return f"/jobs/{job.job_id}/rate" + (f"?rubric={rubrics.digest(rubric)}" if known else "")


def judged_by(experiment: results_service_pb2.Experiment) -> list[str]:
    """The judges that its jobs ask for, as "endpoint/model"."""
    return [*dict.fromkeys(f"{one.endpoint}/{one.model}" for job in experiment.jobs for one in job.spec.judges)]
