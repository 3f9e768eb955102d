"""What a job over a suite comes to."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue, TaskNotFoundError, select
from services.evaluator.data.reader import DataMissingError
from services.evaluator.items.task import Task
from tests import real_rows
from tests.growth import is_about_linear
from tests.unit.evaluator import every_task, glue_rows
from touchstone.v1 import job_pb2, suite_pb2

GENERATE = suite_pb2.MODE_GENERATE


def _plan(catalogue: Catalogue, work: job_pb2.SuiteWork) -> dict[str, job_pb2.TaskPlan]:
    return {plan.task: plan for plan in catalogue.plan(work, GENERATE, 32)}


def test_suites_are_listed_without_reading_data() -> None:
    suites = {suite.suite: suite for suite in Catalogue(None).suites()}
    assert list(suites)[:5] == ["demo", "glue", "superglue", "mmlu", "medical"]
    assert list(suites)[5:] == sorted(list(suites)[5:])
    assert [task.task for task in suites["demo"].tasks] == ["sentiment", "acceptability", "entailment", "paraphrase"]
    for suite in suites.values():
        assert suite.title
        assert suite.description
        for task in suite.tasks:
            assert task.title
            assert task.metrics
            assert task.modes[0] == GENERATE
            assert task.data.dataset
            assert task.data.revision == ""


def test_task_is_made_once(catalogue: Catalogue) -> None:
    assert catalogue.task("glue", "rte") is catalogue.task("glue", "rte", GENERATE)
    assert catalogue.task("glue", "rte", suite_pb2.MODE_UNSPECIFIED) is catalogue.task("glue", "rte")


def test_unknown_names_are_answered_with_the_known_ones(catalogue: Catalogue) -> None:
    with pytest.raises(TaskNotFoundError, match=r"Suite gleu not found\. Suites: demo, glue, ") as suite:
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
    assert (sst2.version, sst2.scorer_version, sst2.prompt_hash) == ("1", "7", task.prompt_hash())
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
        "nyu-mll/glue/rte/validation.jsonl or .parquet. Add it with `touchstone data pull`, or leave the task out. "
        "If only the examples come from this split, set shots to 0."
    )


@pytest.mark.parametrize(
    ("work", "field"),
    [
        (job_pb2.SuiteWork(suite="glue", limit=-1), "suite.limit"),
        (job_pb2.SuiteWork(suite="glue", shots=-1), "suite.shots"),
        (job_pb2.SuiteWork(suite="glue", shots=33), "suite.shots"),
        (job_pb2.SuiteWork(suite="glue", repeats=-1), "suite.repeats"),
        (job_pb2.SuiteWork(suite="glue", repeats=65), "suite.repeats"),
    ],
)
def test_impossible_work_is_refused(catalogue: Catalogue, work: job_pb2.SuiteWork, field: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        catalogue.plan(work, GENERATE, 32)
    assert error.value.field == field


def test_several_answers_per_item_are_planned_with_their_metrics(catalogue: Catalogue) -> None:
    plans = _plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte", "stsb"], repeats=4))
    assert (plans["rte"].items, plans["rte"].repeats) == (12, 4)
    rules = {spec.metric: (spec.rule, spec.statistic, spec.beside) for spec in plans["rte"].metrics[1:]}
    assert rules == {
        "pass@4": (suite_pb2.MetricSpec.RULE_ANY, "correct", True),
        "maj@4": (suite_pb2.MetricSpec.RULE_MAJORITY, "correct", True),
    }
    # A rating is not right or wrong.
    assert [spec.metric for spec in plans["stsb"].metrics] == ["pearson", "spearman"]
    once = _plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte"]))["rte"]
    assert (once.repeats, len(once.metrics), once.item_set) == (1, 1, plans["rte"].item_set)


def test_log_likelihoods_are_asked_for_once_per_item(catalogue: Catalogue) -> None:
    with pytest.raises(InvalidRequestError, match="the same each time") as error:
        catalogue.plan(job_pb2.SuiteWork(suite="glue", repeats=2), suite_pb2.MODE_LOGLIKELIHOOD, 32)
    assert error.value.field == "suite.repeats"


def test_task_that_does_not_run_in_the_mode_is_left_out_unless_nothing_else_is(catalogue: Catalogue) -> None:
    mode = suite_pb2.MODE_LOGLIKELIHOOD
    plans = catalogue.plan(job_pb2.SuiteWork(suite="glue"), mode, 32)
    assert "stsb" not in [plan.task for plan in plans]
    assert len(plans) == 9
    with pytest.raises(InvalidRequestError, match="Task stsb runs in generate mode only"):
        catalogue.plan(job_pb2.SuiteWork(suite="glue", tasks=["stsb"]), mode, 32)


def test_texts_of_unequal_length_are_ranked_by_log_probability_per_character(tmp_path: Path) -> None:
    catalogue = Catalogue(every_task.write_mirror(tmp_path))
    for mode, metrics in (
        (GENERATE, [("accuracy", False)]),
        (suite_pb2.MODE_LOGLIKELIHOOD, [("acc_norm", False), ("accuracy", True), ("acc_bytes", True)]),
    ):
        (plan,) = catalogue.plan(job_pb2.SuiteWork(suite="hellaswag"), mode, 32)
        assert [(spec.metric, spec.beside) for spec in plan.metrics] == metrics


def test_plan_with_examples_is_another_configuration_over_the_same_items(catalogue: Catalogue) -> None:
    plain = _plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte"]))["rte"]
    shown = _plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte"], shots=2))["rte"]
    assert (shown.item_set, shown.version) == (plain.item_set, plain.version)
    assert shown.prompt_hash != plain.prompt_hash


def test_missing_train_split_fails_a_plan_with_examples_by_name(tmp_path: Path) -> None:
    catalogue = Catalogue(glue_rows.write(tmp_path))
    (tmp_path / "nyu-mll/glue/rte/train.jsonl").unlink()
    assert len(_plan(catalogue, job_pb2.SuiteWork(suite="glue", tasks=["rte"]))) == 1
    with pytest.raises(DataMissingError, match=r"nyu-mll/glue \(rte, train\) is not in TOUCHSTONE_DATA_DIR"):
        catalogue.plan(job_pb2.SuiteWork(suite="glue", tasks=["rte"], shots=1), GENERATE, 32)


class _Library:
    """An open suite of one group over demo's tasks."""

    def __init__(self) -> None:
        self._demo = Catalogue()

    def announced(self) -> suite_pb2.Suite:
        return suite_pb2.Suite(suite="library", title="Library", description="Tasks of a library.", open=True)

    def tasks(self, name: str) -> list[str]:
        return ["sentiment", "entailment"] if name == "both" else [name]

    def weighting(self, name: str) -> suite_pb2.Weighting:
        return suite_pb2.WEIGHTING_ITEMS if name == "both" else suite_pb2.WEIGHTING_TASKS

    def task(self, name: str, mode: suite_pb2.Mode, shots: int) -> Task:
        return self._demo.task("demo", name, mode, shots)


def test_tasks_of_an_open_suite_are_planned_by_name() -> None:
    catalogue = Catalogue(None, [_Library()])
    assert catalogue.suites()[-1].open
    plans = _plan(catalogue, job_pb2.SuiteWork(suite="library:both"))
    assert list(plans) == ["sentiment", "entailment"]
    assert {plan.weighting for plan in plans.values()} == {suite_pb2.WEIGHTING_ITEMS}
    assert catalogue.task("library:both", "entailment") is catalogue.task("library:both", "entailment")
    with pytest.raises(TaskNotFoundError, match=r"Name a task of library, as in library:<task>\."):
        catalogue.plan(job_pb2.SuiteWork(suite="library"), GENERATE, 32)
    with pytest.raises(TaskNotFoundError, match=r"Suite other:x not found\. Suites: demo, .*, library:<task>\."):
        catalogue.plan(job_pb2.SuiteWork(suite="other:x"), GENERATE, 32)


def test_every_suite_says_by_which_rule_its_authors_report_it() -> None:
    rules = {suite.suite: suite.weighting for suite in Catalogue().suites()}
    over_items = {suite for suite, rule in rules.items() if rule == suite_pb2.WEIGHTING_ITEMS}
    assert over_items == {"mmlu", "mmlu_pro"}
    assert {rules[suite] for suite in rules.keys() - over_items} == {suite_pb2.WEIGHTING_TASKS}


def test_a_plan_says_the_rule_of_its_suite(tmp_path: Path) -> None:
    plans = _plan(Catalogue(glue_rows.write(tmp_path)), job_pb2.SuiteWork(suite="glue", tasks=["rte", "wnli"]))
    assert {plan.weighting for plan in plans.values()} == {suite_pb2.WEIGHTING_TASKS}


def test_bbh_has_23_tasks_for_its_authors() -> None:
    (bbh,) = (suite for suite in Catalogue().suites() if suite.suite == "bbh")
    assert len(bbh.tasks) == 27
    assert len({task.score_group or task.task for task in bbh.tasks}) == 23


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


def test_planning_takes_linear_time(tmp_path: Path) -> None:
    def plan(size: int) -> None:
        mirror = tmp_path / str(size)
        folder = mirror / "cais" / "mmlu" / "anatomy"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "test.jsonl").open("w") as file:
            for n in range(size):
                options = [f"The {n}th bone", f"{n} of the nerves", "Both of them", f"Neither, but {n % 7} others"]
                question = f"Which of these does a surgeon meet first at place {n}, coming from the left?"
                file.write(json.dumps({"question": question, "choices": options, "answer": n % 4}) + "\n")
        (planned,) = Catalogue(mirror).plan(job_pb2.SuiteWork(suite="mmlu", tasks=["anatomy"]), GENERATE, 32)
        assert planned.items == size

    assert is_about_linear(plan, 20_000)


def test_selection_takes_linear_time(tmp_path: Path) -> None:
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
    assert len(catalogue.selection(task, 0, 0).indexes) == 40_430
    assert is_about_linear(lambda size: catalogue.selection(task, size, 0), 40_000)


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


@pytest.mark.skipif(not real_rows.folder(), reason=real_rows.absent())
def test_glue_is_planned_on_the_real_mirror_without_the_mismatched_split() -> None:
    plans = _plan(Catalogue(real_rows.folder()), job_pb2.SuiteWork(suite="glue"))
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
