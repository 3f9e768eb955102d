"""Every metric of a stored job against scikit-learn, scipy and plain counting, for every shape of task."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import pytest

from services.errors import InvalidRequestError
from services.results.intake import writes
from services.results.items import reads
from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.recompute import Answers
from tests.unit.results.builders import ANSWERED, ERROR, UNPARSED, answer, batch, job, known, plan
from touchstone.v1 import item_result_pb2, metric_pb2, results_service_pb2
from touchstone.v1.suite_pb2 import MetricSpec

LABELS = ("no", "yes", "maybe")
NAMED = [
    MetricSpec(metric=name, positive_label="yes")
    for name in ("accuracy", "f1", "f1a", "macro_f1", "matthews_correlation")
]
RULES = [
    MetricSpec(metric="exact_match", rule=MetricSpec.RULE_MEAN, statistic="correct"),
    MetricSpec(metric="token_f1", rule=MetricSpec.RULE_MEAN, statistic="overlap", beside=True),
    MetricSpec(metric="em", rule=MetricSpec.RULE_ALL, statistic="correct", over="question"),
    MetricSpec(metric="parity", rule=MetricSpec.RULE_EQUAL, over="question"),
    MetricSpec(metric="pass@k", rule=MetricSpec.RULE_ANY, statistic="correct"),
    MetricSpec(metric="maj@k", rule=MetricSpec.RULE_MAJORITY, statistic="correct"),
]
CORRELATIONS = [MetricSpec(metric="pearson"), MetricSpec(metric="spearman")]
SHAPES = [(1, False), (1, True), (4, False), (3, True)]
"""Answers per item, and whether items share passages."""


def results(seed: int, items: int, repeats: int, grouped: bool) -> list[item_result_pb2.ItemResult]:
    """Items in questions of three, questions in passages of uneven size; every eighth answer is unreadable."""
    rng = random.Random(seed)
    made = []
    for item in range(items):
        reference = rng.choice(LABELS)
        for repeat in range(repeats):
            said = rng.choice([reference, reference, *LABELS])
            outcome = UNPARSED if rng.random() < 0.12 else ANSWERED
            right = float(outcome == ANSWERED and said == reference)
            target = LABELS.index(reference) + rng.random()
            statistics = {
                "correct": right,
                "overlap": right or (rng.random() if outcome == ANSWERED else 0.0),
                "question": float(item // 3),
                "value": target + rng.gauss(0, 1),
                "target": target,
            }
            passage = f"p{int((item // 3) ** 0.7)}" if grouped else ""
            one = answer(item, said, reference, outcome, statistics=statistics, group=passage, repeat=repeat)
            one.position = item * repeats + repeat
            made.append(one)
    return made


def measured(
    connection: Connection,
    made: Sequence[item_result_pb2.ItemResult],
    specs: Sequence[MetricSpec],
    repeats: int = 1,
    items: int = 0,
) -> dict[str, metric_pb2.Metric]:
    planned = plan("t", items or len({one.item for one in made}))
    planned.repeats = repeats
    del planned.metrics[:]
    planned.metrics.extend(specs)
    known(connection, planned)
    writes.store_items(connection, [batch("j", "t", made)])
    (task,) = job_result.compute(connection, job("j", planned), seal=True).result.tasks
    return {metric.metric: metric for metric in task.metrics}


def exported(connection: Connection) -> Answers:
    request = results_service_pb2.ListItemsRequest(job_id="j", page_size=500)
    items: list[results_service_pb2.StoredItem] = []
    while True:
        page = reads.list_items(connection, request)
        items += page.items
        request.page_token = page.next_page_token
        if not request.page_token:
            return Answers(items, "yes")


@pytest.mark.parametrize(("repeats", "grouped"), SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_every_metric_equals_its_recomputation_from_exported_items(
    connection: Connection, repeats: int, grouped: bool, seed: int
) -> None:
    specs = [*NAMED, *RULES, *CORRELATIONS]
    found = measured(connection, results(seed, 60, repeats, grouped), specs, repeats)
    answers = exported(connection)
    for spec in specs:
        metric = found[spec.metric]
        assert metric.mean == pytest.approx(answers.of(spec), abs=1e-9), spec.metric
        assert metric.ci95_low <= metric.mean <= metric.ci95_high
        assert metric.beside == spec.beside
        if spec.metric in ("em", "parity"):
            assert metric.n == 20
        else:
            assert metric.n == 60, "items, not answers"


@pytest.mark.parametrize(("repeats", "grouped"), SHAPES[1:])
def test_clustered_standard_errors_equal_a_brute_force_computation(
    connection: Connection, repeats: int, grouped: bool
) -> None:
    specs = [*NAMED, *RULES]
    found = measured(connection, results(7, 36, repeats, grouped), specs, repeats)
    answers = exported(connection)
    for spec in specs:
        expected = answers.clustered_standard_error(spec)
        exact = 1e-9 if spec.rule or spec.metric == "accuracy" else 1e-7
        assert found[spec.metric].stderr == pytest.approx(expected, abs=exact), spec.metric
        # Right or wrong, and one item per cluster: nothing hangs together, and the two formulas are one.
        alone = {score for _, score in answers.units(spec)} <= {0, 1} and not grouped if spec.rule else False
        assert found[spec.metric].method == ("wilson" if alone else "clustered"), spec.metric


def test_items_that_stand_alone_have_wilson_student_and_chi_square_intervals(connection: Connection) -> None:
    found = measured(connection, results(1, 60, 1, False), [*NAMED, *RULES])
    assert {name: metric.method for name, metric in found.items()} == {
        "accuracy": "wilson",
        "f1": "chi-square",
        "f1a": "chi-square",
        "macro_f1": "chi-square",
        "matthews_correlation": "chi-square",
        "exact_match": "wilson",
        "token_f1": "t",
        "em": "wilson",
        "parity": "wilson",
        "pass@k": "wilson",
        "maj@k": "wilson",
    }


def test_passages_of_one_item_each_change_no_standard_error(connection: Connection) -> None:
    made = results(2, 60, 1, False)
    for one in made:
        one.group = f"p{one.item}"
    found = measured(connection, made, NAMED[:1])["accuracy"]
    p = found.mean
    assert (found.method, found.n) == ("wilson", 60)
    assert found.stderr == pytest.approx((p * (1 - p) / 60) ** 0.5, abs=1e-12)


def test_a_group_that_a_sample_left_with_one_item_has_no_parity(connection: Connection) -> None:
    made = [answer(i, statistics={"correct": 1.0, "question": float(i // 2)}) for i in range(5)]
    assert measured(connection, made, RULES)["parity"].n == 2


def test_a_tie_in_the_majority_counts_by_the_share_of_right_predictions(connection: Connection) -> None:
    votes = [["yes", "yes", "no", "no"], ["yes", "no", "no", "maybe"], ["yes", "yes", "yes", "no"]]
    made = [
        answer(item, said, position=4 * item + repeat, repeat=repeat)
        for item, said_of in enumerate(votes)
        for repeat, said in enumerate(said_of)
    ]
    found = measured(connection, made, RULES, repeats=4)
    assert found["maj@k"].mean == pytest.approx((0.5 + 0 + 1) / 3)
    assert found["pass@k"].mean == 1.0
    assert found["exact_match"].mean == pytest.approx((0.5 + 0.25 + 0.75) / 3)


@pytest.mark.parametrize(("repeats", "grouped"), SHAPES)
def test_bounds_hold_every_way_in_which_unanswered_answers_could_have_ended(
    connection: Connection, repeats: int, grouped: bool
) -> None:
    specs = [NAMED[0], *RULES]
    made = results(5, 24, repeats, grouped)
    silent = [one for one in made if one.outcome == UNPARSED]
    found = measured(connection, made, specs, repeats)
    rng = random.Random(1)
    for share in (0.0, 1.0, *[rng.random() for _ in range(20)]):
        for one in silent:
            right = rng.random() < share
            one.outcome = ANSWERED
            one.prediction = one.reference if right else next(label for label in LABELS if label != one.reference)
            one.statistics["correct"] = one.statistics["overlap"] = float(right)
        other = Answers([results_service_pb2.StoredItem(result=one) for one in made])
        for spec in specs:
            metric = found[spec.metric]
            assert metric.bound_low - 1e-9 <= other.of(spec) <= metric.bound_high + 1e-9, spec.metric


@pytest.mark.parametrize(("repeats", "grouped"), SHAPES)
def test_bounds_hold_every_way_in_which_lost_answers_could_have_ended(
    connection: Connection, repeats: int, grouped: bool
) -> None:
    specs = [NAMED[0], *RULES]
    made = results(6, 24, repeats, grouped)
    rng = random.Random(2)
    whole = Answers([results_service_pb2.StoredItem(result=one) for one in made])
    kept = [one for one in made if rng.random() > 0.2]
    errors = [answer(one.item, outcome=ERROR, repeat=one.repeat, position=one.position) for one in made[:3]]
    kept = [*errors, *[one for one in kept if one not in made[:3]]]
    found = measured(connection, kept, specs, repeats, items=24)
    for spec in specs:
        metric = found[spec.metric]
        assert metric.bound_low - 1e-9 <= whole.of(spec) <= metric.bound_high + 1e-9, spec.metric
        assert metric.bound_low < metric.bound_high


def test_a_statistic_of_any_size_has_a_plain_mean_and_no_bounds_that_cannot_be_told(connection: Connection) -> None:
    spec = MetricSpec(metric="words", rule=MetricSpec.RULE_MEAN, statistic="words")
    made = [answer(i, statistics={"words": 10.0 + i % 4}) for i in range(40)]
    made.append(answer(40, outcome=UNPARSED, statistics={"words": 0.0}))
    found = measured(connection, made, [spec])["words"]
    assert found.mean == pytest.approx(460 / 41)
    assert found.method == "t"
    assert found.ci95_high > 11
    assert not found.HasField("bound_low")


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        ([MetricSpec(metric="bleu")], "unknown metric 'bleu'"),
        ([MetricSpec(metric="x", rule=MetricSpec.RULE_MEAN)], "which statistic"),
        ([MetricSpec(metric="x", rule=MetricSpec.RULE_ALL, statistic="correct")], "groups items"),
        ([MetricSpec(metric="x", rule=MetricSpec.RULE_ANY, statistic='a"b')], "quotation mark"),
        ([NAMED[0], NAMED[0]], "the same name"),
    ],
)
def test_a_metric_that_cannot_be_computed_is_refused_with_the_task(
    connection: Connection, specs: list[MetricSpec], reason: str
) -> None:
    with pytest.raises(InvalidRequestError, match=f"Task t: .*{reason}"):
        measured(connection, results(1, 6, 1, False), specs)


def test_statistics_with_hostile_names_are_read_by_name(connection: Connection) -> None:
    names = ("a.b", "$[0]", "it's", "ü 1")
    made = [answer(i, statistics=dict.fromkeys(names, float(i % 2))) for i in range(4)]
    specs = [MetricSpec(metric=n, rule=MetricSpec.RULE_MEAN, statistic=n) for n in names]
    assert {metric.mean for metric in measured(connection, made, specs).values()} == {0.5}


def test_a_statistic_that_is_no_number_counts_as_nothing(connection: Connection) -> None:
    made = [answer(i, statistics={"overlap": float("nan") if i else 1.0, "correct": 1.0}) for i in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measured(connection, made, RULES)["token_f1"].mean == 0.25


def test_correct_that_is_no_number_is_not_right(connection: Connection) -> None:
    made = [answer(i, statistics={"correct": float("nan") if i else 1.0}) for i in range(4)]
    accuracy = measured(connection, made, [MetricSpec(metric="accuracy"), *RULES])["accuracy"]
    assert accuracy.mean == 0.25
