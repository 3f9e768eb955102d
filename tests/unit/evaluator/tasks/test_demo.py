"""The bundled data: always the same, apart, and neither too easy nor too hard for a bag of words."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import pytest

from services.evaluator import demo
from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Task
from services.evaluator.providers.baseline import BAG_OF_WORDS, RANDOM, BaselineProvider
from services.evaluator.providers.protocol.provider import Request
from services.words.suites import MAJORITY
from touchstone.v1 import item_result_pb2, job_pb2

CONFIGS = ("sentiment", "acceptability", "entailment", "paraphrase")
# SHA-256 over the rows of both splits: runs on demo data compare over machines and versions.
REVISIONS = {
    "sentiment": "d405579bf769b633",
    "acceptability": "590f19c3f5a9fd8c",
    "entailment": "5bd1595983198455",
    "paraphrase": "c73d9a20c3cac4dc",
}


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_never_change(config: str) -> None:
    rows = json.dumps(demo.rows(config), sort_keys=True)
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == REVISIONS[config]


@pytest.mark.parametrize("config", CONFIGS)
def test_splits_are_large_and_apart(config: str) -> None:
    splits = demo.rows(config)
    texts = {
        split: [tuple(str(row[column]) for column in row if column not in ("label", "idx")) for row in rows]
        for split, rows in splits.items()
    }
    assert len(texts["validation"]) == 400
    assert len(texts["train"]) == 2000
    assert len(set(texts["validation"]) | set(texts["train"])) == 2400
    for rows in splits.values():
        assert [row["idx"] for row in rows] == list(range(len(rows)))
        assert {row["label"] for row in rows} == {0, 1}


@pytest.mark.parametrize("config", CONFIGS)
def test_longer_train_split_begins_with_the_shipped_one(config: str) -> None:
    shipped, longer = demo.rows(config), demo.rows(config, 10_000)
    assert longer["validation"] == shipped["validation"]
    assert longer["train"][:2000] == shipped["train"]
    assert len(longer["train"]) == 10_000


@pytest.mark.parametrize("config", CONFIGS)
def test_texts_are_whole_sentences(config: str) -> None:
    for row in demo.rows(config)["validation"]:
        for column in ("sentence", "sentence1", "sentence2"):
            text = str(row.get(column, "A."))
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert "  " not in text
            assert " ." not in text


@pytest.mark.parametrize("config", ["sentiment", "acceptability"])
def test_single_words_do_not_decide(config: str) -> None:
    """No frequent word stands with one label only, so that a list of words cannot solve the task."""
    seen: dict[str, Counter[int]] = {}
    for row in demo.rows(config)["train"]:
        for word in set(str(row["sentence"]).lower().rstrip(".?").split()):
            seen.setdefault(word, Counter())[int(row["label"])] += 1
    frequent = [counts for counts in seen.values() if counts.total() >= 100]
    assert len(frequent) >= 10
    assert all(min(counts[0], counts[1]) / counts.total() > 0.05 for counts in frequent)


async def _accuracy(model: str, task: Task) -> float:
    provider = BaselineProvider()
    correct = 0.0
    for item in task.items(range(task.size())):
        scored = task.score(item, await provider.generate(Request(model, job_pb2.Sampling(seed=1), task, item)))
        assert scored.outcome == item_result_pb2.OUTCOME_ANSWERED
        correct += scored.statistics["correct"]
    return correct / task.size()


@pytest.mark.parametrize("config", CONFIGS)
async def test_baselines_stand_where_a_floor_should(config: str) -> None:
    task = Catalogue().task("demo", config)
    assert 0.5 < await _accuracy(MAJORITY, task) <= 0.60
    assert 0.40 <= await _accuracy(RANDOM, task) <= 0.60
    assert 0.65 <= await _accuracy(BAG_OF_WORDS, task) <= 0.90
