"""Log-likelihood mode against lm_eval 0.4.13: the same rows, one model, one server, every task that it has right."""

from __future__ import annotations

import time

import pytest

from tests.parity.both import SHOTS, Comparison, installed, run_both
from tests.parity.compared import COMPARED, NOT_COMPARED, scored_by_loglikelihood
from touchstone.v1 import item_result_pb2

pytestmark = pytest.mark.parity

PER_TOKEN = 1e-4
# Our names of lm_eval's metrics. Its "f1" of CommitmentBank is the mean over the three classes.
METRICS = {"acc": "accuracy", "acc_norm": "acc_norm", "acc_bytes": "acc_bytes", "mcc": "matthews_correlation"}
each_run = pytest.mark.parametrize(("name", "shots"), [(name, shots) for name in COMPARED for shots in SHOTS])


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    if not installed():
        pytest.skip("The environment of the parity check is not set up. Run: make parity")
    began = time.monotonic()
    compared = run_both(tmp_path_factory.mktemp("parity"))
    runs = compared.runs
    differences = [
        abs(ours.loglikelihood - theirs) / ours.tokens
        for run in runs.values()
        for answered, document in zip(run.answered, run.documents, strict=True)
        for ours, theirs in zip(answered.continuations, document["loglikelihoods"], strict=True)
    ]
    print(
        f"\n{len(COMPARED)} tasks with {' and '.join(map(str, SHOTS))} examples: "
        f"{sum(len(run.answered) for run in runs.values()):,} items, {len(differences):,} continuations, largest "
        f"difference per token {max(differences):.1e}, {time.monotonic() - began:.0f} s"
    )
    return compared


def test_every_task_of_this_mode_is_compared_or_has_a_reason_not_to_be() -> None:
    assert set(COMPARED) | set(NOT_COMPARED) == scored_by_loglikelihood()
    assert not set(COMPARED) & set(NOT_COMPARED)
    assert len(COMPARED) == 15 + 57 + 8 + 3 + 14


@each_run
def test_prompts_and_continuations_are_those_of_lm_eval(compared: Comparison, name: str, shots: int) -> None:
    run = compared.runs[name, shots]
    ours = [[(item.context, choice) for choice in item.choices] for item in run.items]
    theirs = [list(zip(document["contexts"], document["continuations"], strict=True)) for document in run.documents]
    assert ours == theirs


@each_run
def test_loglikelihoods_are_those_of_lm_eval(compared: Comparison, name: str, shots: int) -> None:
    run = compared.runs[name, shots]
    for answered, document in zip(run.answered, run.documents, strict=True):
        for ours, theirs in zip(answered.continuations, document["loglikelihoods"], strict=True):
            assert ours.loglikelihood == pytest.approx(theirs, abs=PER_TOKEN * ours.tokens, rel=0)
        assert [continuation.greedy for continuation in answered.continuations] == document["greedy"]


@each_run
def test_predictions_are_those_of_lm_eval(compared: Comparison, name: str, shots: int) -> None:
    run = compared.runs[name, shots]
    for item, answered, document in zip(run.items, run.answered, run.documents, strict=True):
        labels = item.labels or run.task.labels
        found = document["loglikelihoods"]
        assert answered.prediction == labels[found.index(max(found))]
        ours = {name: answered.statistics[name] for name in ("correct", "correct_norm", "correct_bytes")}
        assert list(ours.values()) == [document["verdicts"][metric] for metric in ("acc", "acc_norm", "acc_bytes")]


@each_run
def test_aggregates_are_those_of_lm_eval(compared: Comparison, name: str, shots: int) -> None:
    run = compared.runs[name, shots]
    names = METRICS | {"f1": "macro_f1" if name == "superglue/cb" else "f1"}
    theirs = {names[metric]: value for metric, value in run.results.items() if metric in names}
    expected = {metric: run.metrics[metric] for metric in theirs}
    assert set(theirs) >= {"accuracy", "acc_norm", "acc_bytes"}
    assert {metric.metric for metric in run.task.metrics} <= set(theirs)
    assert theirs == pytest.approx(expected, abs=1e-9)


def test_the_model_tells_choices_apart(compared: Comparison) -> None:
    """A comparison of constants would show nothing."""
    predictions = [answered.prediction for run in compared.runs.values() for answered in run.answered]
    assert len(set(predictions)) > 10
    greedy = [
        continuation.greedy for run in compared.runs.values() for a in run.answered for continuation in a.continuations
    ]
    assert 0.01 < sum(greedy) / len(greedy) < 0.5
    spreads = [
        max(values) - min(values)
        for run in compared.runs.values()
        for answered in run.answered
        if (values := [continuation.loglikelihood for continuation in answered.continuations])
    ]
    assert sorted(spreads)[len(spreads) // 10] > 0.1


def test_lm_eval_tasks_by_name_score_as_in_lm_eval(compared: Comparison) -> None:
    places = {
        "hellaswag": "hellaswag/hellaswag",
        "arc_easy": "arc/easy",
        "mmlu_anatomy": "mmlu/anatomy",
        "cola": "glue/cola",
    }
    assert set(compared.adapter["loglikelihood"]) == set(places)
    for name, found in compared.adapter["loglikelihood"].items():
        run = compared.runs[places[name], 0]
        assert found["revision"] == run.task.revision()
        for item, document in zip(found["items"], run.documents, strict=True):
            theirs = zip(document["contexts"], document["continuations"], strict=True)
            assert item["requests"] == [list(request) for request in theirs]
            assert item["loglikelihoods"] == pytest.approx(document["loglikelihoods"], abs=0.01)
            verdicts = document["verdicts"]
            expected = {"accuracy": verdicts["acc"], "acc_norm": verdicts["acc_norm"], "correct": verdicts["acc"]}
            assert item["statistics"] == {key: expected[key] for key in item["statistics"]}


def test_lm_eval_task_that_writes_brings_its_examples_stops_and_filters(compared: Comparison) -> None:
    solved = compared.adapter["solved"]
    assert solved["shots"] == 5
    assert solved["roles"] == ["user", "assistant"] * 5 + ["user"]
    assert "Question:" in solved["stop"]
    assert solved["metrics"] == ["exact_match", "exact_match (flexible-extract)"]
    strict, flexible, none = (solved["scored"][how] for how in ("strict", "flexible", "none"))
    assert strict == [item_result_pb2.OUTCOME_ANSWERED, _solved(1.0, 1.0)]
    assert flexible == [item_result_pb2.OUTCOME_UNPARSED, _solved(0.0, 1.0)]
    assert none == [item_result_pb2.OUTCOME_UNPARSED, _solved(0.0, 0.0)]


def test_what_lm_eval_has_and_cannot_be_run_is_refused_with_the_reason(compared: Comparison) -> None:
    refused = compared.adapter["refused"]
    assert "loglikelihood_rolling" in refused["wikitext"]
    assert "runs code that the model writes" in refused["humaneval"]
    assert "images or audio" in refused["mmmu_val_accounting"]
    assert "generate mode only" in refused["gsm8k"]
    assert "has no task 'no_such_task'" in refused["no_such_task"]
    assert "has no task '../cola'" in refused["../cola"]


def test_group_of_lm_eval_stands_for_its_tasks(compared: Comparison) -> None:
    members = {pair.lm_eval for name, pair in COMPARED.items() if name.startswith("mmlu/")}
    assert set(compared.adapter["members"]) == members


def _solved(strict: float, flexible: float) -> dict[str, float]:
    return {"exact_match": strict, "exact_match (flexible-extract)": flexible, "correct": strict}


def test_groups_keep_their_weights(compared: Comparison) -> None:
    over_items, over_tasks = ("WEIGHTING_ITEMS",) * 3, ("WEIGHTING_TASKS",) * 3
    names = ("mmlu", "mmlu_stem", "bbh", "blimp", "ai2_arc", "hellaswag")
    assert compared.adapter["weightings"] == dict(zip(names, (*over_items, *over_tasks), strict=True))
