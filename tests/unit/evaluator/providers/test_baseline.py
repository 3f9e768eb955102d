"""The bundled baselines: what they are, what they answer, and what they need."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Item, Task
from services.evaluator.providers.baseline import BAG_OF_WORDS, RANDOM, BaselineProvider, features
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.words.suites import MAJORITY
from tests.unit.evaluator import glue_rows
from touchstone.v1 import item_result_pb2, job_pb2

TASKS = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli_mismatched", "qnli", "rte", "wnli")


async def _predictions(model: str, task: Task, seed: int = 0) -> list[str]:
    provider = BaselineProvider()
    predictions = []
    for item in task.items(range(task.size())):
        response = await provider.generate(Request(model, job_pb2.Sampling(seed=seed), task, item))
        scored = task.score(item, response)
        assert scored.outcome == item_result_pb2.OUTCOME_ANSWERED
        assert (response.input_tokens, response.output_tokens, response.finish_reason) == (None, None, "stop")
        predictions.append(scored.prediction)
    return predictions


async def test_listing_says_that_they_are_baselines() -> None:
    models = (await BaselineProvider().list_models()).models
    assert [model.model for model in models] == ["majority", "random", "bag-of-words", "echo"]
    for model in models:
        assert model.baseline
        assert model.description.startswith("Baseline, not a language model: ")


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("model", [MAJORITY, RANDOM, BAG_OF_WORDS])
async def test_every_task_is_answered_the_same_each_time(catalogue: Catalogue, model: str, name: str) -> None:
    task = catalogue.task("glue", name)
    first = await _predictions(model, task)
    assert first == await _predictions(model, task)
    if task.scale:
        assert all(task.scale[0] <= float(value) <= task.scale[1] for value in first)
    else:
        assert set(first) <= set(task.labels)


async def test_majority_is_the_train_splits_most_frequent_label(catalogue: Catalogue) -> None:
    # Rows have the labels 0, 2, 0, 1 in turn.
    assert set(await _predictions(MAJORITY, catalogue.task("glue", "mnli"))) == {"entailment"}


async def test_majority_rates_with_the_train_mean(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "stsb")
    mean = sum(float(item.reference) for item in task.train()) / len(task.train())
    (value,) = set(await _predictions(MAJORITY, task))
    assert float(value) == pytest.approx(mean, abs=1e-4)


async def test_random_is_uniform_and_follows_its_seed() -> None:
    task = Catalogue().task("demo", "sentiment")
    guesses = await _predictions(RANDOM, task, seed=5)
    assert guesses == await _predictions(RANDOM, task, seed=5)
    assert guesses != await _predictions(RANDOM, task, seed=6)
    # 400 fair draws: within four standard deviations of a half.
    assert 160 <= Counter(guesses)["positive"] <= 240


async def test_random_does_not_depend_on_the_order_of_items() -> None:
    task, provider = Catalogue().task("demo", "paraphrase"), BaselineProvider()

    async def answers(items: list[Item]) -> dict[int, str]:
        return {i.index: (await provider.generate(Request(RANDOM, job_pb2.Sampling(), task, i))).text for i in items}

    items = list(task.items(range(50)))
    assert await answers(items) == await answers(items[::-1])


async def test_random_rates_over_the_whole_scale(tmp_path: Path) -> None:
    task = Catalogue(glue_rows.write(tmp_path)).task("glue", "stsb")
    values = [float(value) for seed in range(40) for value in await _predictions(RANDOM, task, seed)]
    assert min(values) < 0.25
    assert max(values) > 4.75
    assert sum(values) / len(values) == pytest.approx(2.5, abs=0.3)


async def test_bag_of_words_says_how_many_rows_it_saw(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "sst2")
    (item,) = task.items([0])
    response = await BaselineProvider().generate(Request(BAG_OF_WORDS, job_pb2.Sampling(), task, item))
    assert response.served_model == "bag-of-words, fitted on 12 train rows"


async def test_bag_of_words_learns_its_train_rows(catalogue: Catalogue) -> None:
    task, provider = catalogue.task("glue", "sst2"), BaselineProvider()
    for item in task.train():
        response = await provider.generate(Request(BAG_OF_WORDS, job_pb2.Sampling(), task, item))
        assert response.text == task.answer(item.reference)


async def test_calls_at_once_share_one_fit(tmp_path: Path) -> None:
    task, provider = Catalogue(glue_rows.write(tmp_path)).task("glue", "rte"), BaselineProvider()
    items = list(task.items(range(task.size())))
    calls = [
        asyncio.create_task(provider.generate(Request(BAG_OF_WORDS, job_pb2.Sampling(), task, item))) for item in items
    ]
    await asyncio.sleep(0)
    calls[0].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert not any(isinstance(answer, BaseException) for answer in answers[1:])
    # The train split is no longer needed.
    (tmp_path / "nyu-mll/glue/rte/train.jsonl").unlink()
    await provider.generate(Request(BAG_OF_WORDS, job_pb2.Sampling(), task, items[0]))


@pytest.mark.parametrize("model", [MAJORITY, BAG_OF_WORDS])
async def test_missing_train_split_fails_the_job_with_its_name(tmp_path: Path, model: str) -> None:
    task = Catalogue(glue_rows.write(tmp_path)).task("glue", "rte")
    (item,) = task.items([0])
    train = tmp_path / "nyu-mll/glue/rte/train.jsonl"
    content = train.read_text()
    train.unlink()
    provider = BaselineProvider()
    with pytest.raises(ProviderError) as error:
        await provider.generate(Request(model, job_pb2.Sampling(), task, item))
    assert error.value.fatal
    assert f"The {model} baseline learns from a train split." in error.value.message
    assert "nyu-mll/glue (rte, train)" in error.value.message
    train.write_text(content)
    await provider.generate(Request(model, job_pb2.Sampling(), task, item))


async def test_random_needs_no_train_split(tmp_path: Path) -> None:
    task = Catalogue(glue_rows.write(tmp_path)).task("glue", "rte")
    (tmp_path / "nyu-mll/glue/rte/train.jsonl").unlink()
    assert len(await _predictions(RANDOM, task)) == 12


async def test_train_split_of_one_label_gives_that_label(tmp_path: Path) -> None:
    task = Catalogue(glue_rows.write(tmp_path)).task("glue", "sst2")
    (tmp_path / "nyu-mll/glue/sst2/train.jsonl").write_text('{"sentence": "fine", "label": 1}\n' * 3)
    assert set(await _predictions(BAG_OF_WORDS, task)) == {"positive"}


async def test_unknown_baseline_is_refused(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte")
    (item,) = task.items([0])
    with pytest.raises(ProviderError, match="bert is not a valid baseline") as error:
        await BaselineProvider().generate(Request("bert", job_pb2.Sampling(), task, item))
    assert error.value.fatal


def test_pairs_get_features_of_both_sides_and_their_overlap() -> None:
    found = features({"sentence1": "The dog barked", "sentence2": "The cat barked loudly"})
    assert found["0:dog barked"] == found["1:cat barked"] == 1.0
    assert found["first only:dog"] == found["second only:loudly"] == 1.0
    assert found["shared of all"] == pytest.approx(2 / 5)
    assert found["shared of second"] == pytest.approx(2 / 4)
    assert "shared of all" not in features({"sentence": "The dog barked"})


def test_heavy_libraries_are_not_loaded_before_they_are_needed() -> None:
    code = (
        "import sys; from services.evaluator.providers.baseline import BaselineProvider; "
        "from services.evaluator.catalogue import Catalogue; "
        "catalogue = Catalogue(); task = catalogue.task('demo', 'sentiment', 0, 2); catalogue.selection(task, 9, 1); "
        "list(task.items([7, 5])); sys.exit(', '.join({'sklearn', 'datasets', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[4], timeout=180, capture_output=True, text=True
    )
    assert done.stderr.strip() == ""
