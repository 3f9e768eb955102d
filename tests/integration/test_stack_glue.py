"""GLUE through every process: metrics of models whose answers are known, against other people's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from services.gateway.pages.display import formatting
from tests import doors, real_rows
from tests.glue_runs import ANSWERS, BASELINE, GlueRuns, outcomes
from tests.recompute import suite_score
from tests.rows import write_mirror
from tests.stack import running
from tests.stub_thread import stub_thread
from touchstone.v1 import item_result_pb2

pytestmark = pytest.mark.stack

MODELS = [*ANSWERS, BASELINE]
EXACT = 1e-9


@pytest.fixture(scope="module", params=["own rows", pytest.param("real rows", marks=pytest.mark.stack)])
def glue(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GlueRuns]:
    folder = tmp_path_factory.mktemp("glue")
    if request.param == "own rows":
        data_dir = write_mirror(folder / "data")
    elif (mirror := real_rows.folder()) and real_rows.folder("nyu-mll/glue"):
        data_dir = mirror
    else:
        pytest.skip(real_rows.absent("nyu-mll/glue"))
    with stub_thread() as stubs:
        runs = GlueRuns(folder, data_dir, stubs)
        with running(runs.stack, request):
            yield runs


def test_every_item_of_every_task_is_stored_once_with_the_rows_own_label(glue: GlueRuns) -> None:
    for task, found in glue.answers("careless").items():
        rows = glue.rows(task)
        assert [result.item for result in found.results] == list(range(len(rows)))
        texts = {row["label"]: set[str]() for row in rows}
        for row, result in zip(rows, found.results, strict=True):
            texts[row["label"]].add(result.reference)
            prompt = " ".join(result.prompt.split())
            assert all(" ".join(text.split()) in prompt for text in row.values() if isinstance(text, str))
        assert all(len(names) == 1 for names in texts.values()), f"{task}: a label has several texts"
        assert len(set.union(*texts.values())) == len(texts), f"{task}: two labels have one text"


def test_a_perfect_oracle_scores_one_on_every_task_and_metric(glue: GlueRuns) -> None:
    measured = glue.measured("oracle")
    assert {task: tuple(metrics) for task, metrics in measured.items()} == glue.tasks
    for task, metrics in measured.items():
        for metric, figures in metrics.items():
            assert figures["mean"] == pytest.approx(1.0, abs=EXACT), f"{task} {metric}"
            # A bootstrap of perfectly correlated pairs has no width; every other interval has.
            low, high = figures["ci95"]
            assert high == pytest.approx(1.0, abs=EXACT), f"{task} {metric}"
            assert low < 1.0 or metric in ("pearson", "spearman"), f"{task} {metric}"
            assert figures["unparsed"] == 0
    assert glue.body("oracle")["score"]["mean"] == pytest.approx(1.0, abs=EXACT)


def test_an_inverted_oracle_scores_zero_accuracy_and_the_lowest_correlation(glue: GlueRuns) -> None:
    lowest = {"accuracy": 0.0, "f1": 0.0, "matthews_correlation": -1.0, "pearson": -1.0, "spearman": -1.0}
    for task, metrics in glue.measured("inverted").items():
        for metric, figures in metrics.items():
            assert figures["mean"] == pytest.approx(lowest[metric], abs=EXACT), f"{task} {metric}"


def test_nonsense_is_unparsed_and_never_a_default_label(glue: GlueRuns) -> None:
    found = glue.answers("nonsense")
    assert outcomes(found.values()) == {item_result_pb2.OUTCOME_UNPARSED}
    assert {result.prediction for each in found.values() for result in each.results} == {""}
    for task, metrics in glue.measured("nonsense").items():
        for metric, figures in metrics.items():
            assert figures["unparsed"] == 1.0
            if metric in ("pearson", "spearman"):
                assert figures["mean"] is None, "all predictions are the train mean"
                assert figures["undefined_reason"] == "all predictions are equal"
            else:
                assert figures["mean"] == 0.0, f"{task} {metric}"


def test_the_leaderboard_ranks_the_oracle_first_and_cautions_of_unread_answers(glue: GlueRuns) -> None:
    for provider in ("oracle", "inverted", "careless", "nonsense", BASELINE):
        glue.body(provider)
    board = glue.stack.get("/leaderboard", suite="glue", metric="accuracy")
    ranked = [row["provider"] for row in board["leaderboard"]]
    assert (ranked[0], ranked[-1]) == ("oracle", BASELINE), "baselines follow the models"
    assert {*ranked[1:-1]} == {"inverted", "careless", "nonsense"}
    assert [row["rank"] for row in board["leaderboard"]] == [1, 2, 3, 4, None]
    assert board["leaderboard"][0]["score"] == 1.0
    assert board["leaderboard"][-1]["baseline"]
    assert board["subset"], "fewer rows than published"
    cautions = {row["provider"]: row["caution"] for row in board["leaderboard"]}
    assert "could not be read" in (cautions["nonsense"] or "")
    assert "could not be read" in (cautions["careless"] or "")
    assert cautions["oracle"] is cautions["inverted"] is cautions[BASELINE] is None
    assert not board["not_ranked"]


@pytest.mark.parametrize("model", MODELS)
def test_metrics_equal_scikit_learn_and_scipy_over_the_exported_items(glue: GlueRuns, model: str) -> None:
    answers = glue.answers(model)
    for task, metrics in glue.measured(model).items():
        for metric, figures in metrics.items():
            assert figures["n"] == len(glue.rows(task))
            assert figures["unparsed"] == pytest.approx(answers[task].unparsed, abs=EXACT)
            if figures["mean"] is None:
                assert len({*answers[task].pairs()[0]}) == 1, f"{task} {metric} has a value"
            else:
                assert figures["mean"] == pytest.approx(answers[task].metric(metric), abs=EXACT), f"{task} {metric}"


@pytest.mark.parametrize("model", ["careless", BASELINE])
def test_stored_statistics_follow_from_prediction_reference_and_outcome(glue: GlueRuns, model: str) -> None:
    for task, found in glue.answers(model).items():
        mean = glue.train_mean(task) if task == "stsb" else 0.0
        for result in found.results:
            answered = result.outcome == item_result_pb2.OUTCOME_ANSWERED
            assert bool(result.prediction) == answered
            if task == "stsb":
                value = float(result.prediction) if answered else mean
                assert result.statistics["value"] == pytest.approx(value, abs=1e-6)
                assert result.statistics["target"] == pytest.approx(float(result.reference), abs=EXACT)
            else:
                assert dict(result.statistics) == {"correct": float(result.prediction == result.reference)}


@pytest.mark.parametrize("model", ["careless", BASELINE])
def test_std_is_the_standard_error_and_intervals_are_those_documented(glue: GlueRuns, model: str) -> None:
    answers = glue.answers(model)
    for task, metrics in glue.measured(model).items():
        for metric, figures in metrics.items():
            expected = answers[task].standard_error(metric)
            assert figures["std"] == figures["stderr"]
            if metric == "accuracy":
                assert figures["std"] == pytest.approx(expected, abs=EXACT), task
                assert figures["ci95"] == pytest.approx(list(answers[task].wilson()), abs=EXACT), task
            else:
                assert figures["std"] == pytest.approx(expected, rel=0.15), f"{task} {metric}"
                low, high = figures["ci95"]
                assert low < figures["mean"] < high
                if metric in ("pearson", "spearman"):
                    assert high - low == pytest.approx(2 * 1.96 * expected, rel=0.25), f"{task} {metric}"
                else:
                    # Two optimisers.
                    assert (low, high) == pytest.approx(answers[task].chi_square(metric), abs=1e-3), f"{task} {metric}"


@pytest.mark.parametrize("model", ["oracle", "careless", BASELINE])
def test_the_suite_score_is_the_mean_over_tasks_with_mnli_counted_once(glue: GlueRuns, model: str) -> None:
    answers = glue.answers(model)
    metrics = {task: {name: answers[task].metric(name) for name in names} for task, names in glue.tasks.items()}
    body = glue.body(model)
    assert body["score"]["mean"] == pytest.approx(suite_score(metrics), abs=EXACT)
    assert body["summary"]["total_evaluations"] == 9
    accuracies = {task: {"accuracy": values["accuracy"]} for task, values in metrics.items() if "accuracy" in values}
    board = glue.stack.get("/leaderboard", suite="glue", metric="accuracy")
    rows = [*board["leaderboard"], *board["not_ranked"]]
    (row,) = (row for row in rows if row["provider"] == model)
    assert row["score"] == pytest.approx(suite_score(accuracies), abs=EXACT)
    assert math.isfinite(row["ci95"][0])


@pytest.mark.parametrize(("model", "other"), [(BASELINE, "inverted"), ("inverted", BASELINE)])
def test_the_score_is_the_same_to_the_digit_at_every_door(glue: GlueRuns, model: str, other: str) -> None:
    """Of tasks of unlike size, with correlations that no single item has."""
    job_id, beside = glue.job_id(model), glue.job_id(other)
    told = doors.scores(glue.stack, "glue", job_id, beside)
    expected = told["REST results"]
    assert told == dict.fromkeys(told, expected)
    files = doors.means(glue.stack, "glue", job_id, beside)
    assert files == dict.fromkeys(files, expected[0])
    mean, interval = formatting.hundredths(expected[0]), formatting.span(*expected[1:])
    pages = doors.shown(glue.stack, "glue", job_id, beside)
    assert {name: mean in text.split() for name, text in pages.items()} == dict.fromkeys(pages, True), pages
    assert pages.keys() >= {"jobs", "overview", "leaderboard", "side by side", "compare", "job", "report"}
    with_interval = {"jobs", "leaderboard", "job", "report", "report of the comparison"}
    assert {name for name in with_interval if interval not in pages[name]} == set(), pages


def test_the_bag_of_words_baseline_is_flagged_and_answers_every_item(glue: GlueRuns) -> None:
    body = glue.body(BASELINE)
    assert body["baseline"] is True
    assert outcomes(glue.answers(BASELINE).values()) == {item_result_pb2.OUTCOME_ANSWERED}
