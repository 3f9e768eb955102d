"""An uploaded dataset under one scoring, or several of which the first one ranks: the task `rows`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from services.errors import InvalidRequestError
from services.evaluator.answers import scoring as ends
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.scorers import choosing
from services.evaluator.answers.scorers.scorer import Reply, Scorer, mean, whole
from services.evaluator.data.reader import DataError
from services.evaluator.datasets import rows
from services.evaluator.datasets.rows import Places, item_set, sample
from services.evaluator.datasets.store import Shelf
from services.evaluator.items.hashing import text_hash
from services.evaluator.items.metrics import ACCURACY, beside
from services.evaluator.items.task import Item, Response, Scored, Task
from services.words import chat, plugins
from services.words.scorers import prefixes
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.content_pb2 import ToolCall
from touchstone.v1.dataset_pb2 import DatasetManifest, DatasetRow
from touchstone.v1.scoring_pb2 import Scoring
from touchstone.v1.suite_pb2 import MetricSpec

T = TypeVar("T")

TASK = "rows"
NOT_SCORED = "not scored: the row has no reference"
PROMPT_HASH = text_hash("the messages of the row")
"""The items are the prompts, so that all datasets are run in the same way."""

_MOST_SHOWN = 2000
"""Characters of an answer that are stored with its response, which has all of it."""


class DatasetTask:
    """The rows that jobs of one dataset, limit, seed and scoring run. It offers what `Task` offers for items in memory;
    reading them is asynchronous. Raises InvalidRequestError for a scoring that cannot be used."""

    version = "1"
    mode = suite_pb2.MODE_GENERATE

    def __init__(
        self,
        manifest: DatasetManifest,
        scoring: Scoring,
        limit: int,
        seed: int,
        shelf: Shelf,
        reading: Layer | None = None,
        plugged: Mapping[str, Scorer] = choosing.NONE_PLUGGED,
        further: Sequence[Scoring] = (),
    ) -> None:
        self._scorer = choosing.scorer(scoring, reading, plugged)
        self.further = further_scorers(further, manifest.dataset.scoring, reading, plugged)
        # At most one package has scorers of a job: it says where the job runs, and in which threads.
        own = [one for one in (self._scorer, *(each.scorer for each in self.further)) if one.plugin]
        if len({one.plugin for one in own}) > 1:
            raise InvalidRequestError(plugins.of_several(one.name for one in own), "dataset.further")
        self.plugin = own[0].plugin if own else ""
        self.executor = own[0].executor if own else None
        self.reading = self._scorer.layer
        dataset = manifest.dataset
        self.name = dataset.name
        self.scorer_version = ", ".join([self._scorer.version, *(one.scorer.version for one in self.further)])
        self.metrics = (*self._scorer.metrics, *(metric for one in self.further for metric in one.metrics))
        self.info = suite_pb2.TaskInfo(
            task=TASK,
            title=dataset.name,
            metrics=self.metrics,
            modes=[self.mode],
            published_items=dataset.rows,
            data=suite_pb2.DataSource(dataset=dataset.dataset_id, revision=dataset.digest),
        )
        self._field = rows.field_of(scoring, dataset.scoring)
        self.group_field = scoring.group_field
        self.names_groups = scoring.group_field not in ("", dataset.scoring.group_field)
        """Whether the job has another field for groups than the dataset."""
        self._places = Places(manifest)
        self._shelf = shelf
        self.chosen = sample(TASK, self._places.rows, limit, seed)
        # The text of one scoring is in one line.
        self._scoring = "\n".join(choosing.canonical(one, reading) for one in (scoring, *further))
        self.item_set = self._item_set()
        self._usual: asyncio.Task[str] | None = None

    def only(self, rows: Sequence[int]) -> DatasetTask:
        """The same task over only these rows; their numbers are in increasing order."""
        task = copy(self)
        task.chosen = rows
        task.item_set = task._item_set()
        task._usual = None
        return task

    def _item_set(self) -> str:
        return item_set(self.info.data.revision, self._places.rows, self.chosen, self._scoring)

    def questions(self) -> rows.Questions:
        """What the chosen rows ask for, to be added row by row."""
        return rows.Questions(self._scoring)

    async def items(self, positions: Sequence[int], sampling: job_pb2.Sampling) -> list[Item]:
        """The items at these places among the chosen ones, which are in increasing order, as a job with this sampling
        asks them. Raises DataError."""
        found: list[Item] = []
        async for numbered in self._read([self.chosen[position] for position in positions]):
            found += await self.apart(partial(self._items, numbered, sampling))
        return found

    async def apart(self, call: Callable[[], T]) -> T:
        """What a call gives that asks the scorer, in a thread: of its package if it is a plug-in's."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, call)

    async def batches(self) -> AsyncIterator[list[tuple[int, DatasetRow]]]:
        """All chosen rows with their numbers, in groups as they are stored. Raises DataError."""
        async for numbered in self._read(self.chosen):
            yield numbered

    def answers(self, number: int, row: DatasetRow) -> tuple[str, ...]:
        """The row's right answers. Raises DataError for a reference that the scorer cannot compare with."""
        try:
            return rows.right_answers(row, self._field, self._scorer)
        except ValueError as error:
            raise DataError(
                f"{self.named(number, row)} {error}. Choose another scorer or reference field, "
                f"or upload the file with that row corrected."
            ) from error

    def further_answers(self, number: int, row: DatasetRow) -> tuple[tuple[str, ...], ...]:
        """The right answers of each further scorer in a row that the first one scores. Raises DataError for a row that
        one of them cannot score."""
        found = []
        for one in self.further:
            name = one.scorer.name
            try:
                found.append(one.answers(row))
            except ValueError as error:
                raise DataError(
                    f"{self.named(number, row)} cannot be scored by the further scorer {name}: it {error}. Leave "
                    f"{name} out, or give it another reference field."
                ) from error
        return tuple(found)

    def group(self, row: DatasetRow) -> str:
        """What the rows that depend on this one have in common; empty for a row by itself."""
        own = "" if self._scorer.group is None else self._scorer.group(row)
        return own or rows.group(row, self.group_field)

    def named(self, number: int, row: DatasetRow) -> str:
        """ "Row 3 of questions.jsonl (row-3)"."""
        return f"Row {number + 1} of {self.name} ({row.custom_id})"

    async def usual_answer(self) -> str:
        """The most frequent right answer; empty without any. Reads all chosen rows once."""
        if self._usual is None or (self._usual.done() and self._usual.exception() is not None):
            self._usual = asyncio.create_task(self._most_frequent())
        return await asyncio.shield(self._usual)

    def written(self, answer: str) -> tuple[str, tuple[ToolCall, ...]]:
        """The text and the tool calls of a model that gives this right answer."""
        return (answer, ()) if self._scorer.calls is None else ("", self._scorer.calls(answer))

    def score(self, item: Item, response: Response) -> Scored:
        """Pure. A row without a reference has no statistics and does not count in any metric. The prediction and the
        outcome are the first scorer's."""
        scorer = self._scorer
        if (end := ends.unanswered(response, {})) is not None:
            missed = scorer.missed(item.answers) | self._judged_further(None, item)
            return replace(end, statistics=missed) if item.answers else end
        reply = Reply(response.text, ends.is_cut(response), item.question, response.tool_calls)
        found = (scorer.read if item.answers else whole)(reply)
        if response.tool_calls and not item.answers:
            # Answers without a reference are compared by what they say.
            calls = map(chat.by_value, response.tool_calls)
            found = Extraction(chat.answer_text(found.answer, calls), NOT_SCORED)
        statistics: dict[str, float] = {}
        if item.answers:
            statistics |= scorer.judge(found.answer, item.answers) if found.answer else scorer.missed(item.answers)
        if item.answers and scorer.first is not None and "correct" in statistics:
            # How much the score depends on counting the last answer, not the first, is reported with it.
            first = scorer.first(reply)
            correct = scorer.judge(first.answer, item.answers)["correct"] if first and first.answer else 0.0
            if first is not None and correct != statistics["correct"]:
                statistics["correct_first"] = correct
        statistics |= self._judged_further(reply, item)
        how = found.how if item.answers or not found.answer else NOT_SCORED
        shown = replace(found, answer=found.answer[:_MOST_SHOWN], how=how)
        return ends.scored(response, shown, statistics)

    def _judged_further(self, reply: Reply | None, item: Item) -> dict[str, float]:
        """Without any further right answers, as in a row without a reference, nothing is judged."""
        judged: dict[str, float] = {}
        for one, answers in zip(self.further, item.further_answers, strict=False):
            judged |= one.judge(reply, answers)
        return judged

    def _items(self, numbered: Iterable[tuple[int, DatasetRow]], sampling: job_pb2.Sampling) -> list[Item]:
        return [self._item(number, row, sampling) for number, row in numbered]

    def _item(self, number: int, row: DatasetRow, sampling: job_pb2.Sampling) -> Item:
        answers = self.answers(number, row)
        made = rows.item(number, row, answers, rows.asked_with(row, sampling), self.group(row))
        if not answers or not self.further:
            return made
        return replace(made, further_answers=self.further_answers(number, row))

    def _first_answers(self, numbered: Iterable[tuple[int, DatasetRow]]) -> list[str]:
        return [answer for number, row in numbered for answer in self.answers(number, row)[:1]]

    async def _read(self, numbers: Sequence[int]) -> AsyncIterator[list[tuple[int, DatasetRow]]]:
        for shard, first, wanted in self._places.of(numbers):
            there = (await self._shelf.rows(shard)).rows
            yield [(number, there[number - first]) for number in wanted]

    async def _most_frequent(self) -> str:
        counts: Counter[str] = Counter()
        async for numbered in self.batches():
            counts.update(await self.apart(partial(self._first_answers, numbered)))
        return min(counts, key=lambda answer: (-counts[answer], answer), default="")


AnyTask = Task | DatasetTask
"""The content of calls and scores."""


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


def further_scorers(
    scorings: Sequence[Scoring], own: Scoring, reading: Layer | None, plugged: Mapping[str, Scorer]
) -> tuple[FurtherScorer, ...]:
    """`own` is the dataset's scoring, `reading` and `plugged` as in `choosing.scorer`. Raises InvalidRequestError for a
    scoring that cannot be used, and for a scorer whose metrics are not means."""
    found = []
    for place, (scoring, prefix) in enumerate(zip(scorings, prefixes(scorings), strict=True)):
        scorer = choosing.scorer(scoring, reading, plugged)
        for metric in scorer.metrics:
            if metric.metric != ACCURACY.metric and metric.rule != MetricSpec.RULE_MEAN:
                raise InvalidRequestError(
                    f"{scorer.name} can only be the first scorer of a run: its metric {metric.metric} is not a mean.",
                    f"dataset.further[{place}]",
                )
        found.append(FurtherScorer(scorer, prefix, rows.field_of(scoring, own)))
    return tuple(found)
