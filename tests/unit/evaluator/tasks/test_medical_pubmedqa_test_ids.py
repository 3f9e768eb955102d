"""The official test of PubMedQA."""

from __future__ import annotations

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.tasks.medical import TEST_IDS
from tests.unit.evaluator import every_task
from tests.unit.evaluator.tasks.tasks import GENERATE


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return Catalogue(every_task.write_mirror(tmp_path_factory.mktemp("mirror")))


def test_pubmedqa_takes_the_official_test_and_its_examples_from_the_rest(catalogue: Catalogue) -> None:
    assert len(TEST_IDS) == 500
    task = catalogue.task("medical", "pubmedqa", GENERATE, 3)
    rows = task.size(), len(task.train())
    assert rows == (6, 6)
    assert {item.hash for item in task.items(range(6))}.isdisjoint(item.hash for item in task.train())
    assert task.labels == ("yes", "no", "maybe")
