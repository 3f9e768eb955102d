"""Scorers of a run after the first one, which ranks: their metrics are reported, not scored. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.scorers import choosing
from services.evaluator.answers.scorers.scorer import Reply, Scorer, mean
from services.evaluator.datasets import rows
from services.evaluator.items.metrics import ACCURACY, beside
from services.words.scorers import prefixes
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.scoring_pb2 import Scoring
from touchstone.v1.suite_pb2 import MetricSpec


@dataclass(frozen=True, slots=True)
class FurtherScorer:
    """`prefix` begins the names of its metrics and statistics, as in "json_schema.correct". `field` is where its
    references are, as in `rows.right_answers`."""

    scorer: Scorer
    prefix: str
    field: str

    @property
    def metrics(self) -> Iterator[MetricSpec]:
        """Each is a mean, also where the first scorer's would count predictions."""
        for metric in self.scorer.metrics:
            statistic = "correct" if metric.metric == ACCURACY.metric else metric.statistic
            yield beside(mean(f"{self.prefix}{metric.metric}", f"{self.prefix}{statistic}"))

    def answers(self, row: DatasetRow) -> tuple[str, ...]:
        """The row's right answers. Raises ValueError with a clause that continues after the row's name, also for a row
        without any: a mean over other rows than the first scorer's could not be set against it."""
        found = rows.right_answers(row, self.field, self.scorer)
        if not found:
            raise ValueError("has no reference")
        return found

    def judge(self, reply: Reply | None, answers: Sequence[str]) -> dict[str, float]:
        """The statistics of a reply, or of an answer without one. Those of single fields are the first scorer's only:
        they would make up most of a stored answer."""
        scorer = self.scorer
        found = scorer.read(reply).answer if reply is not None else ""
        judged = scorer.judge(found, answers) if found else scorer.missed(answers)
        return {f"{self.prefix}{name}": judged[name] for name in scorer.statistics}


def further_scorers(scorings: Sequence[Scoring], own: Scoring, reading: Layer | None) -> tuple[FurtherScorer, ...]:
    """`own` is the dataset's scoring, `reading` as in `choosing.scorer`. Raises InvalidRequestError for a scoring that
    cannot be used."""
    return tuple(
        FurtherScorer(choosing.scorer(scoring, reading), prefix, rows.field_of(scoring, own))
        for scoring, prefix in zip(scorings, prefixes(scorings), strict=True)
    )
