"""The floor that a model must beat: bundled baselines, which are not language models and cost nothing.

They answer in the words that a perfect model would use, so that the same extraction and scoring judge them.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from services.evaluator.data.reader import DataError
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.item_result import called
from services.evaluator.items.task import Item, Response, Task
from services.evaluator.plugins.contract import PluginError
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request, no_loglikelihood
from services.words import refusals
from services.words.refusals import counted
from services.words.suites import ECHO, MAJORITY
from touchstone.v1 import endpoint_pb2
from touchstone.v1.content_pb2 import ToolCall

RANDOM = "random"
BAG_OF_WORDS = "bag-of-words"
MOST_ROWS = 20_000
"""Train rows that the bag of words is fitted on; a longer split is sampled evenly, so that fitting takes seconds."""

_DESCRIPTIONS = {
    MAJORITY: (
        "Baseline, not a language model: always gives the most frequent label of the task's train split, or the "
        "most frequent reference of an uploaded dataset."
    ),
    RANDOM: "Baseline, not a language model: a seeded guess in which every label is equally likely.",
    BAG_OF_WORDS: (
        "Baseline, not a language model: logistic regression on word and bigram counts (ridge regression for "
        f"ratings), fitted on up to {MOST_ROWS:,} rows of the task's train split. Where answers are option letters "
        "or free text, it gives the most frequent answer."
    ),
    ECHO: (
        "Baseline, not a language model: repeats the last message. Use it to try uploaded datasets without a model."
    ),
}
NO_ANSWER = "not known"
"""The answer for a task with neither labels nor a train split: never right, so the floor is 0."""
NO_REFERENCE = (
    "The majority baseline gives the most frequent reference, but no row of the dataset has one. Name the field "
    "that holds references, or choose echo."
)
_WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was learned from `rows` train rows: a label, or a rating as text, for an item's texts."""

    predict: Callable[[Mapping[str, str]], str]
    rows: int


class BaselineProvider:
    """Implements `Provider`. A task is fitted once per process, in a thread, while other tasks continue."""

    def __init__(self) -> None:
        self._fits: dict[tuple[str, ...], asyncio.Task[Fitted]] = {}

    async def list_models(self) -> Listing:
        return Listing(
            tuple(
                endpoint_pb2.Model(model=model, description=description, baseline=True)
                for model, description in _DESCRIPTIONS.items()
            )
        )

    async def generate(self, request: Request) -> Response:
        """Raises a fatal ProviderError for an unknown baseline, and if the train split it needs is missing."""
        model, task, item = request.model, request.task, request.item
        if isinstance(task, DatasetTask):
            return await _of_rows(model, task, item)
        if model == RANDOM:
            started = time.perf_counter()
            label, served = _guess(task, item, request.sampling.seed + request.repeat), ""
        else:
            fitted = await self._fitted(model, task)
            started = time.perf_counter()
            label, served = fitted.predict(item.fields), f"{model}, fitted on {fitted.rows:,} train rows"
            if item.labels and label not in item.labels:
                label = item.labels[0]  # this item does not offer the most frequent answer
        text = await called(task, partial(task.answer, label))
        return Response(
            text,
            finish_reason="stop",
            latency_ms=(time.perf_counter() - started) * 1000,
            served_model=served,
        )

    async def loglikelihoods(self, request: Request) -> Response:
        raise no_loglikelihood("baseline")

    async def close(self) -> None:
        for fit in self._fits.values():
            fit.cancel()

    async def _fitted(self, model: str, task: Task) -> Fitted:
        check(model, of_rows=False)
        data = task.info.data
        key = (model, data.dataset, data.config, data.split, task.info.task, task.version)
        if key not in self._fits:
            self._fits[key] = asyncio.create_task(_fit(_FITS[model], task))
        try:
            # Shielded: a cancelled call must not end the fit that others wait for.
            return await asyncio.shield(self._fits[key])
        except PluginError as error:
            self._fits.pop(key, None)
            raise ProviderError(error.message, fatal=True) from error
        except DataError as error:
            self._fits.pop(key, None)  # the next job may find the data
            raise ProviderError(
                f"The {model} baseline learns from a train split. {error.message}", fatal=True
            ) from error


async def _fit(fit: Callable[[Task], Fitted], task: Task) -> Fitted:
    return await asyncio.get_running_loop().run_in_executor(task.executor, fit, task)


def check(model: str, *, of_rows: bool) -> None:
    """Raises a fatal ProviderError for an unknown baseline, and for one without a basis: an uploaded row has neither
    labels nor a train split, and a suite's prompt is not an answer."""
    if model not in _DESCRIPTIONS:
        raise ProviderError(refusals.not_valid(model, "baseline", _DESCRIPTIONS), fatal=True, status=404)
    if of_rows and model not in (ECHO, MAJORITY):
        raise ProviderError(
            f"The {model} baseline needs labels or a train split, which an uploaded dataset does not have. Choose "
            f"{ECHO}, which repeats the last message, or {MAJORITY}, which gives the most frequent reference.",
            fatal=True,
            status=400,
        )
    if not of_rows and model == ECHO:
        raise ProviderError(
            f"The {ECHO} baseline repeats the prompt, which never answers the items of a suite. Choose one of "
            f"{', '.join(_FITS)}, {RANDOM}.",
            fatal=True,
            status=400,
        )


async def _of_rows(model: str, task: DatasetTask, item: Item) -> Response:
    """Raises a fatal ProviderError, as `check` does, and if no row has a reference."""
    check(model, of_rows=True)
    started = time.perf_counter()
    text, served = item.messages[-1].content, ""
    calls: tuple[ToolCall, ...] = ()
    if model == MAJORITY:
        try:
            usual = await task.usual_answer()
        except DataError as error:
            raise ProviderError(error.message, fatal=True) from error
        if not usual:
            raise ProviderError(NO_REFERENCE, fatal=True, status=400)
        text, calls = task.written(usual)
        served = f"{model}, of {counted(len(task.chosen), 'row')}"
    return Response(
        text,
        finish_reason="stop",
        latency_ms=(time.perf_counter() - started) * 1000,
        served_model=served,
        tool_calls=calls,
    )


def features(texts: Mapping[str, str]) -> dict[str, float]:
    """Word and bigram counts of each text; for a pair also the words that one side lacks, and the overlap."""
    sides = [_WORD.findall(text.lower()) for text in texts.values()]
    counts: Counter[str] = Counter()
    for side, words in enumerate(sides):
        counts.update(f"{side}:{word}" for word in words)
        counts.update(f"{side}:{first} {second}" for first, second in pairwise(words))
    found: dict[str, float] = dict(counts)
    if len(sides) == 2:
        first, second = map(set, sides)
        found |= {f"first only:{word}": 1.0 for word in first - second}
        found |= {f"second only:{word}": 1.0 for word in second - first}
        shared = len(first & second)
        found["shared of all"] = shared / max(1, len(first | second))
        found["shared of second"] = shared / max(1, len(second))
        found["length difference"] = abs(len(sides[0]) - len(sides[1])) / max(1, len(sides[0]), len(sides[1]))
    return found


def _guess(task: Task, item: Item, seed: int) -> str:
    digest = hashlib.sha256(f"{seed}:{item.hash}".encode()).digest()
    draw = int.from_bytes(digest[:6], "big") / 2**48
    if task.scale is None:
        labels = item.labels or task.labels
        return labels[int(draw * len(labels))] if labels else NO_ANSWER
    low, high = task.scale
    return f"{low + draw * (high - low):.2f}"


def _fit_majority(task: Task) -> Fitted:
    items = task.train()
    counts = Counter(item.reference for item in items)
    if task.scale is not None:
        mean = math.fsum(float(value) * count for value, count in counts.items()) / len(items)
        usual = f"{mean:.4f}"
    elif task.labels:
        # Without a train split all are equally frequent: the first one is chosen.
        usual = max(task.labels, key=lambda label: counts[label])
    else:
        usual = max(counts, key=lambda answer: counts[answer], default=NO_ANSWER)
    return Fitted(lambda texts: usual, len(items))


def _fit_words(task: Task) -> Fitted:
    # Imported here: the baselines are the only code that needs it, and it takes a second.
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge

    items = task.train()
    if task.scale is None and not _has_classes(task, items):
        return _fit_majority(task)
    rows = min(len(items), MOST_ROWS)
    sample = [items[index * len(items) // rows] for index in range(rows)]
    references = [item.reference for item in sample]
    if len(set(references)) == 1:
        return Fitted(lambda texts: references[0], rows)
    vectorizer = DictVectorizer()
    counts = vectorizer.fit_transform(features(item.fields) for item in sample)
    if task.scale is None:
        classifier = LogisticRegression(max_iter=1000).fit(counts, references)
        return Fitted(lambda texts: str(classifier.predict(vectorizer.transform(features(texts)))[0]), rows)
    low, high = task.scale
    ridge = Ridge(alpha=1.0).fit(counts, [float(reference) for reference in references])

    def rate(texts: Mapping[str, str]) -> str:
        value = float(ridge.predict(vectorizer.transform(features(texts)))[0])
        return f"{min(max(value, low), high):.4f}"

    return Fitted(rate, rows)


def _has_classes(task: Task, items: Sequence[Item]) -> bool:
    """Whether the labels mean the same in every item. Letters of options do not: each item gives them other texts."""
    return len(items) > 0 and len(task.labels) > 0 and task.labels[0] not in items[0].fields


_FITS: dict[str, Callable[[Task], Fitted]] = {MAJORITY: _fit_majority, BAG_OF_WORDS: _fit_words}
