"""What a job over a suite comes to."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue, TaskNotFoundError, select
from services.evaluator.data import DataMissingError
from services.evaluator.tasks.base import Task
from tests.unit.evaluator import glue_rows
from touchstone.v1 import job_pb2, suite_pb2

GENERATE = suite_pb2.MODE_GENERATE


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(glue_rows.write(tmp_path))


def _plan(catalogue: Catalogue, work: job_pb2.SuiteWork) -> dict[str, job_pb2.TaskPlan]:
    return {plan.task: plan for plan in catalogue.plan(work, GENERATE, 32)}


def test_suites_are_listed_without_reading_data() -> None:
    suites = {suite.suite: suite for suite in Catalogue(None).suites()}
    assert list(suites) == ["demo", "glue"]
    assert [task.task for task in suites["demo"].tasks] == ["sentiment", "acceptability", "entailment", "paraphrase"]
    for suite in suites.values():
        assert suite.title
        assert suite.description
        for task in suite.tasks:
            assert task.title
            assert task.metrics
            assert list(task.modes) == [GENERATE]
            assert task.data.dataset
            assert task.data.revision == ""


def test_task_is_made_once(catalogue: Catalogue) -> None:
    assert catalogue.task("glue", "rte") is catalogue.task("glue", "rte", GENERATE)
    assert catalogue.task("glue", "rte", suite_pb2.MODE_UNSPECIFIED) is catalogue.task("glue", "rte")


def test_unknown_names_are_answered_with_the_known_ones(catalogue: Catalogue) -> None:
    with pytest.raises(TaskNotFoundError, match=r"There is no suite 'gleu'\. Suites: demo, glue\.") as suite:
        catalogue.task("gleu", "rte")
    with pytest.raises(TaskNotFoundError, match=r"Suite glue has no task 'ax'\. Tasks: cola, sst2,") as task:
        catalogue.plan(job_pb2.SuiteWork(suite="glue", tasks=["rte", "ax"]), GENERATE, 32)
    assert (suite.value.field, task.value.field) == ("suite", "suite.tasks")


def test_plan_says_everything_that_a_run_rests_on(catalogue: Catalogue) -> None:
    plans = _plan(catalogue, job_pb2.SuiteWork(suite="glue"))
    assert list(plans)[:3] == ["cola", "sst2", "mrpc"]
    assert len(plans) == 10
    sst2, task = plans["sst2"], catalogue.task("glue", "sst2")
    assert (sst2.title, sst2.items, sst2.published_items, sst2.unit_size) == ("SST-2", 12, 872, 32)
    assert (sst2.version, sst2.scorer_version, sst2.prompt_hash) == ("1", "1", task.prompt_hash())
    assert (sst2.data.dataset, sst2.data.config, sst2.data.split) == ("nyu-mll/glue", "sst2", "validation")
    assert sst2.data.revision == task.revision()
    assert len(sst2.data.revision) == 64
    assert [metric.metric for metric in plans["cola"].metrics] == ["matthews_correlation", "accuracy"]
    assert plans["mnli"].score_group == plans["mnli_mismatched"].score_group == "mnli"
    assert task.info.data.revision == ""


def test_named_tasks_are_planned_in_the_suites_order(catalogue: Catalogue) -> None:
    plans = _plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte", "cola", "rte"]))
    assert list(plans) == ["cola", "rte"]


def test_optional_task_is_left_out_where_its_data_is_absent(tmp_path: Path) -> None:
    catalogue = Catalogue(glue_rows.write(tmp_path, mismatched=False))
    plans = _plan(catalogue, job_pb2.SuiteWork(suite="glue"))
    assert "mnli" in plans
    assert "mnli_mismatched" not in plans
    assert len(plans) == 9


def test_optional_task_that_is_named_is_left_out_too_unless_nothing_else_is(tmp_path: Path) -> None:
    catalogue = Catalogue(glue_rows.write(tmp_path, mismatched=False))
    assert list(_plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte", "mnli_mismatched"]))) == ["rte"]
    with pytest.raises(DataMissingError, match="mnli, validation_mismatched"):
        catalogue.plan(job_pb2.SuiteWork(suite="glue", tasks=["mnli_mismatched"]), GENERATE, 32)


def test_missing_task_fails_the_plan_with_its_name_and_the_remedy(tmp_path: Path) -> None:
    catalogue = Catalogue(glue_rows.write(tmp_path))
    (tmp_path / "nyu-mll/glue/rte/validation.jsonl").unlink()
    with pytest.raises(DataMissingError) as error:
        catalogue.plan(job_pb2.SuiteWork(suite="glue"), GENERATE, 32)
    assert error.value.message == (
        f"The data set nyu-mll/glue (rte, validation) is not in TOUCHSTONE_DATA_DIR: {tmp_path} has no "
        "nyu-mll/glue/rte/validation.jsonl or .parquet. Add the file, or name the tasks that you have with `tasks`."
    )


@pytest.mark.parametrize(
    ("work", "field"),
    [
        (job_pb2.SuiteWork(suite="glue", limit=-1), "suite.limit"),
        (job_pb2.SuiteWork(suite="glue", shots=-1), "suite.shots"),
        (job_pb2.SuiteWork(suite="glue", shots=2), "suite.shots"),
        (job_pb2.SuiteWork(suite="glue", repeats=3), "suite.repeats"),
    ],
)
def test_impossible_work_is_refused(catalogue: Catalogue, work: job_pb2.SuiteWork, field: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        catalogue.plan(work, GENERATE, 32)
    assert error.value.field == field


@pytest.fixture(scope="module")
def sentiment() -> Task:
    return Catalogue().task("demo", "sentiment")


def test_no_limit_and_a_large_limit_select_every_row(sentiment: Task) -> None:
    assert list(select(sentiment, 0, 7)) == list(select(sentiment, 400, 7)) == list(range(400))
    assert list(select(sentiment, 4000, 7)) == list(range(400))


def test_sample_is_nested_sorted_and_not_the_first_rows(sentiment: Task) -> None:
    small, large = select(sentiment, 100, 3), select(sentiment, 200, 3)
    assert (len(small), len(large)) == (100, 200)
    assert set(small) < set(large)
    assert list(small) == sorted(small)
    # Evenly over the split: a hundred rows of four hundred, within four standard deviations of 25 a quarter.
    assert all(10 <= sum(start <= index < start + 100 for index in small) <= 40 for start in range(0, 400, 100))


def test_sample_follows_its_seed_and_its_task(sentiment: Task) -> None:
    paraphrase = Catalogue().task("demo", "paraphrase")
    assert select(sentiment, 50, 1) == select(sentiment, 50, 1)
    assert select(sentiment, 50, 1) != select(sentiment, 50, 2)
    assert select(sentiment, 50, 1) != select(paraphrase, 50, 1)


def test_item_set_tells_samples_apart_and_whole_runs_alike(catalogue: Catalogue) -> None:
    def item_set(limit: int, seed: int) -> str:
        return _plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte"], limit=limit, seed=seed))["rte"].item_set

    assert item_set(0, 1) == item_set(0, 2) == item_set(12, 1)
    assert len({item_set(0, 0), item_set(5, 1), item_set(5, 2), item_set(6, 1)}) == 4
    task = catalogue.task("glue", "rte")
    assert catalogue.selection(task, 5, 1).item_set == item_set(5, 1)
    assert len(catalogue.selection(task, 5, 1).indexes) == 5


def test_forty_thousand_items_are_selected_and_hashed_in_under_two_seconds(tmp_path: Path) -> None:
    folder = tmp_path / "nyu-mll" / "glue" / "qqp"
    folder.mkdir(parents=True)
    questions = "".join(
        f'{{"question1": "How far is town {n} from the sea?", "question2": "Where is town {n}?", "label": {n % 2}}}\n'
        for n in range(40_430)
    )
    (folder / "validation.jsonl").write_text(questions)
    catalogue = Catalogue(tmp_path)
    task = catalogue.task("glue", "qqp")
    assert task.size() == 40_430
    started = time.process_time()
    selection = catalogue.selection(task, 0, 0)
    catalogue.selection(task, 40_000, 0)
    assert time.process_time() - started < 2.0
    assert len(selection.indexes) == 40_430


def test_threads_that_ask_at_once_read_a_split_once(tmp_path: Path) -> None:
    catalogue = Catalogue(glue_rows.write(tmp_path))
    revisions: list[str] = []

    def read() -> None:
        revisions.append(catalogue.task("glue", "cola").revision())
        # What is read later would be missing.
        (tmp_path / "nyu-mll/glue/cola/validation.jsonl").unlink(missing_ok=True)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(revisions) == 8
    assert len(set(revisions)) == 1


@pytest.mark.skipif(not glue_rows.REAL.is_dir(), reason=glue_rows.NO_REAL)
def test_glue_is_planned_on_the_real_mirror_without_the_mismatched_split() -> None:
    plans = _plan(Catalogue(glue_rows.REAL), job_pb2.SuiteWork(suite="glue"))
    assert {task: plan.items for task, plan in plans.items()} == {
        "cola": 400,
        "sst2": 400,
        "mrpc": 400,
        "qqp": 109,
        "stsb": 400,
        "mnli": 400,
        "qnli": 400,
        "rte": 277,
        "wnli": 71,
    }
