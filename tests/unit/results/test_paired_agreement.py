"""Paired statistics against scipy, statsmodels and scikit-learn, where they have them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn import metrics as sk
from statsmodels.stats.contingency_tables import cochrans_q
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import ttost_paired

from services.results.intervals import score_interval
from services.results.paired import binary, distributions, exchange_p
from services.results.paired.difference import Difference, Terms
from services.results.paired.families import benjamini_hochberg, holm
from services.results.paired.omnibus import task_omnibus
from services.results.paired.rows import ClusteredTable, Correlation, Cost, TaskRows
from services.results.paired.sign_flip import sign_flip_p
from services.results.paired.suite_difference import suite_differences
from services.results.paired.task_differences import task_differences
from services.results.statistics import Floats, Ints
from tests.unit.results.paired_rows import counted, labelled, mixed_task, scored

PAIR = [(0, 1)]
counts = st.integers(0, 300)


def difference(task: TaskRows, metric: str, terms: Terms | None = None) -> Difference:
    return task_differences([task], PAIR, terms or Terms())[0][metric][0]


@given(counts, counts, counts, counts)
@settings(max_examples=60, deadline=None)
def test_mcnemars_p_is_that_of_scipy_and_statsmodels(both: int, only_a: int, only_b: int, neither: int) -> None:
    if both + only_a + only_b + neither == 0:
        return
    found = difference(counted(both, only_a, only_b, neither), "accuracy")
    expected = statsmodels_mcnemar([[both, only_a], [only_b, neither]], exact=True).pvalue
    assert found.p == pytest.approx(expected, rel=1e-9)
    if only_a + only_b:
        assert found.p == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue, rel=1e-9)
    assert (found.only_a, found.only_b, found.n) == (only_a, only_b, both + only_a + only_b + neither)
    items = np.repeat([0.0, 1.0, -1.0], [both + neither, only_a, only_b])
    assert found.value == pytest.approx(items.mean())
    assert found.stderr == pytest.approx(items.std() / np.sqrt(len(items)))


def test_the_score_statistic_takes_its_error_where_the_true_difference_holds() -> None:
    """Against the likelihood itself, maximised numerically under the difference (Tango 1998)."""
    for n, only_a, only_b, gap in ((48, 9, 3, 0.05), (100, 2, 11, 0.1), (250, 30, 22, -0.04), (60, 5, 0, 0.02)):

        def loss(share_b: float, n: int = n, a: int = only_a, b: int = only_b, gap: float = gap) -> float:
            rest = 1 - 2 * share_b - gap
            return float(-stats.multinomial.logpmf([a, b, n - a - b], n, [share_b + gap, share_b, rest]))

        low, high = max(0.0, -gap) + 1e-12, (1 - gap) / 2 - 1e-12
        share_b = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        expected = (only_a - only_b - n * gap) / np.sqrt(n * (2 * share_b + gap - gap**2))
        items, a, b = (np.array([float(v)]) for v in (n, only_a, only_b))
        found = binary.score_statistic(items, a, b, gap)
        assert found[0] == pytest.approx(expected, rel=1e-4)


def test_the_score_interval_ends_where_the_score_test_starts_to_reject() -> None:
    n, a, b = np.array([100.0, 871.0, 40.0]), np.array([9.0, 60.0, 0.0]), np.array([4.0, 80.0, 0.0])
    for end in binary.score_interval(n, a, b, 0.1):
        np.testing.assert_allclose(np.abs(binary.score_statistic(n, a, b, end)), stats.norm.ppf(0.95), rtol=1e-6)


def test_wilsons_interval_is_statsmodels() -> None:
    for right, n in ((0, 7), (29, 30), (812, 1000)):
        expected = proportion_confint(right, n, method="wilson")
        assert score_interval(right / n, n) == pytest.approx(expected, abs=1e-12)


def test_differences_of_scores_have_the_error_interval_and_equivalence_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((60, 2)) * [0.9, 1.0]
    found = difference(scored(values), "score", Terms(margin=0.2))
    expected = stats.ttest_rel(values[:, 0], values[:, 1])
    interval = expected.confidence_interval(0.95)
    assert found.stderr == pytest.approx((values[:, 0] - values[:, 1]).std(ddof=1) / np.sqrt(60))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=0.05)
    assert found.equivalence_p == pytest.approx(ttost_paired(values[:, 0], values[:, 1], -0.2, 0.2)[0], rel=1e-6)


@pytest.mark.parametrize("n", [3, 8, 13])
def test_the_sign_flip_test_is_scipys_exact_permutation_test(n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.normal(0.4, 1, n), rng.integers(-2, 4, n).astype(float), np.round(rng.normal(0.3, 1, n), 1)):
        expected = stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=2**n + 1).pvalue
        assert sign_flip_p(values, np.ones(n)) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.sampled_from([-3, -2, -1, -0.5, 0, 0.25, 1, 2]), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_every_way_to_the_sign_flip_test_gives_the_same_p(values: list[float]) -> None:
    """Few sums are enumerated, those on a lattice transformed: a tenth of a percent tells ties apart."""
    differences = np.array(values)
    whole = sign_flip_p(differences, np.ones(len(values)))
    assert 0 < whole <= 1
    distinct, times = np.unique(differences, return_counts=True)
    assert sign_flip_p(distinct, times.astype(float)) == pytest.approx(whole, rel=1e-9)
    shares = 1.0
    outcomes = np.zeros(1)
    for value in np.abs(differences[:14]):
        outcomes = np.concatenate([outcomes + value, outcomes - value])
    if len(differences) <= 14:
        shares = float(np.mean(np.abs(outcomes) >= abs(differences.sum()) - 1e-9))
        assert whole == pytest.approx(shares, rel=1e-9)


def test_many_differences_of_many_sizes_are_tested_as_by_a_million_draws() -> None:
    rng = np.random.default_rng(6)
    values = rng.gamma(0.7, 1, 80) * rng.choice([-1, 1], 80, p=[0.36, 0.64])
    sums = (2.0 * rng.integers(0, 2, (400_000, 80), dtype=np.int8) - 1) @ np.abs(values)
    expected = np.mean(np.abs(sums) >= abs(values.sum()))
    assert sign_flip_p(values, np.ones(80)) == pytest.approx(expected, rel=0.03)


@given(st.integers(3, 6), st.integers(5, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_cochrans_q_is_that_of_statsmodels(models: int, items: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 2, (items, models)).astype(float)
    found = task_omnibus(scored(values), "score", range(models))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cochrans_q(values, return_object=True)
    if not np.isfinite(expected.statistic):
        assert found is None
        return
    assert found is not None
    assert (found.test, found.degrees_of_freedom, found.n) == ("Cochran's Q", models - 1, items)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("count", [1, 2, 14, 57])
def test_adjusted_p_are_those_of_statsmodels(count: int) -> None:
    p = np.round(np.random.default_rng(count).random(count) ** 3, 2).tolist()
    for function, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        assert function(p) == pytest.approx(multipletests(p, method=method)[1].tolist(), abs=1e-12)


def test_tails_and_quantiles_are_scipys() -> None:
    degrees = np.concatenate([np.arange(1, 320), [1.3, 7.7, 1e3, 1e5, np.inf]])
    for probability in (0.8, 0.975, 0.9995):
        found = distributions.student_quantile(probability, degrees)
        np.testing.assert_allclose(found, stats.t.ppf(probability, degrees), rtol=1e-9)
    t = np.linspace(-6, 9, len(degrees))
    np.testing.assert_allclose(distributions.student_tail(t, degrees), stats.t.sf(t, degrees), rtol=1e-9)
    trials = np.repeat([1, 5, 60, 3001, 40_000], 9)
    most = np.floor(trials * np.tile(np.linspace(0, 1, 9), 5)) - 1
    np.testing.assert_allclose(distributions.binomial_tail(most, trials), stats.binom.cdf(most, trials, 0.5), rtol=1e-8)
    for degree in (1, 2, 7, 30):
        for x in (0.0, 0.3, 8.0, 90.0):
            assert distributions.chi_square_tail(x, degree) == pytest.approx(stats.chi2.sf(x, degree), rel=1e-9)


@pytest.mark.parametrize("metric", ["f1", "macro_f1", "matthews_correlation"])
@pytest.mark.parametrize(
    ("n", "a", "b"),
    [
        (90, (0.86, 0.14), (0.74, 0.26)),
        (400, (0.5, 0.64), (0.995, 0.995)),
        (1043, (0.5, 0.64), (0.995, 0.995)),
        (400, (0.7, 0.82), (0.99, 0.99)),
        (400, (0.995, 0.98), (0.995, 0.995)),
    ],
    ids=str,
)
def test_differences_of_tables_are_scikit_learns_and_their_p_is_that_of_exchanged_answers(
    metric: str, n: int, a: tuple[float, float], b: tuple[float, float]
) -> None:
    """`a` and `b` are how often each model says yes where that is right, and where it is wrong."""
    rng, draws = np.random.default_rng(30), 6_000
    references = (rng.random(n) < 0.69).astype(int)
    said = [(rng.random(n) < np.where(references, *each)).astype(int) for each in (a, b)]
    found = difference(labelled(references, np.stack(said, axis=1), (metric,)), metric)
    in_sklearn = {"f1": sk.f1_score, "matthews_correlation": sk.matthews_corrcoef, "macro_f1": _macro_f1}[metric]
    assert found.value == pytest.approx(in_sklearn(references, said[0]) - in_sklearn(references, said[1]))
    moved = _exchanged(rng, draws, lambda answers: _of_rows(metric, references, answers), *said)
    _agrees(found, moved)


def test_the_suites_p_is_that_of_exchanged_answers_in_all_tasks() -> None:
    """Unlike tables with and without accuracy, more outcomes than can be enumerated, real numbers, clusters."""
    rng, draws = np.random.default_rng(3), 3_000
    groups, moved = [], np.zeros(draws)
    for n, metrics, a, b in (
        (700, ("matthews_correlation",), (0.55, 0.5), (0.995, 0.985)),
        (400, ("f1", "accuracy"), (0.9, 0.4), (0.85, 0.3)),
    ):
        references = (rng.random(n) < 0.69).astype(int)
        said = [(rng.random(n) < np.where(references, *each)).astype(int) for each in (a, b)]
        groups.append([labelled(references, np.stack(said, axis=1), metrics, task=metrics[0])])

        def score(answers: Ints, references: Ints = references, metrics: tuple[str, ...] = metrics) -> Floats:
            values = [_of_rows(metric, references, answers) for metric in metrics]
            return np.asarray(np.mean(values, axis=0))

        moved += _exchanged(rng, draws, score, *said)
    scores = np.clip(rng.random((200, 2)) + np.array([0.05, 0]), 0, 1)
    groups.append([scored(scores)])
    moved += _exchanged(rng, draws, lambda answers: np.asarray(answers.mean(axis=1)), *scores.T)
    task = mixed_task(rng, "clustered table", models=2)
    table = task.metrics["f1a"]
    assert isinstance(table, ClusteredTable)
    groups.append([task])
    swap = rng.random((draws, table.shares.shape[1])) < 0.5
    one, other = table.shares

    def f1a(totals: Floats) -> Floats:
        no_yes, yes_no, yes_yes, unread = totals[:, 1:].T
        return np.asarray(2 * yes_yes / (2 * yes_yes + no_yes + yes_no + unread))

    moved += f1a(swap @ one + ~swap @ other) - f1a(~swap @ one + swap @ other)
    _agrees(suite_differences(groups, PAIR, Terms())[0], moved / 4)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_p_are_the_enumerated_ones_however_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far smaller than one in as many draws, too."""
    rng = np.random.default_rng(seed)
    references = (rng.random(400) < 0.69).astype(int)
    right = np.where(references[:, None], [0.9, 0.995], [0.8 - 0.12 * seed, 0.98])
    predictions = (rng.random((400, 2)) < right).astype(int)
    task = labelled(references, predictions, ("matthews_correlation", "f1"))
    exact = suite_differences([[task]], PAIR, Terms())[0].p
    monkeypatch.setattr(exchange_p, "ATOMS", 1)
    drawn = suite_differences([[task]], PAIR, Terms())[0].p
    assert drawn == pytest.approx(exact, rel=0.1, abs=1e-6)
    assert drawn != exact


def _exchanged(
    rng: np.random.Generator, draws: int, score: Callable[[Any], Floats], a: npt.NDArray[Any], b: npt.NDArray[Any]
) -> Floats:
    """Differences of a score of (draws, items) after exchanging the answers to random items."""
    swap = rng.random((draws, len(a))) < 0.5
    return score(np.where(swap, b, a)) - score(np.where(swap, a, b))


def _agrees(found: Difference, moved: Floats) -> None:
    assert found.value is not None
    expected = float(np.mean(np.abs(moved) >= abs(found.value) - 1e-12))
    error = np.sqrt(max(expected, 1 / len(moved)) / len(moved))
    assert found.p == pytest.approx(expected, rel=0.05, abs=4 * error)


def _macro_f1(references: Ints, predictions: Ints) -> float:
    return float(sk.f1_score(references, predictions, average="macro"))


def _of_rows(metric: str, references: Ints, predictions: Ints) -> Floats:
    """A metric of two labels, of (draws, items) predictions."""
    tp, fp = (((predictions == 1) & (references == y)).sum(axis=1).astype(float) for y in (1, 0))
    fn, tn = (((predictions == 0) & (references == y)).sum(axis=1).astype(float) for y in (1, 0))
    if metric == "accuracy":
        return np.asarray((tp + tn) / (tp + tn + fp + fn))
    found: Floats = 2 * tp / (2 * tp + fp + fn)
    if metric == "macro_f1":
        found = (found + 2 * tn / (2 * tn + fp + fn)) / 2
    if metric == "matthews_correlation":
        # 0 where all answers are the same: no product below 1 is one.
        found = (tp * tn - fp * fn) / np.sqrt(np.maximum((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn), 1))
    return found


@pytest.mark.parametrize("metric", ["f1", "macro_f1", "matthews_correlation"])
def test_errors_of_differences_of_tables_are_those_of_a_paired_bootstrap(metric: str) -> None:
    rng, n = np.random.default_rng(31), 400
    references = rng.integers(0, 2, n)
    a, b = (np.where(rng.random(n) < share, references, 1 - references) for share in (0.86, 0.74))
    found = difference(labelled(references, np.stack([a, b], axis=1), (metric,)), metric)
    picks = rng.integers(0, n, (4_000, n))
    drawn = _of_rows(metric, references[picks], a[picks]) - _of_rows(metric, references[picks], b[picks])
    assert found.stderr == pytest.approx(drawn.std(), rel=0.06)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_errors_of_differences_of_correlations_are_those_of_a_paired_bootstrap(metric: str) -> None:
    rng = np.random.default_rng(2)
    task = mixed_task(rng, "correlation", models=2, n=300)
    correlation = task.metrics[metric]
    assert isinstance(correlation, Correlation)
    function: Any = stats.pearsonr if metric == "pearson" else stats.spearmanr
    drawn = []
    for _ in range(400):
        picks = rng.integers(0, 300, 300)
        a, b = (function(c.values[picks], c.targets[picks]).statistic for c in correlation.columns)
        drawn.append(a - b)
    assert difference(task, metric).stderr == pytest.approx(np.std(drawn), rel=0.1)


@pytest.mark.parametrize("statistic", ["mean", "p50", "p95"])
def test_ratios_of_costs_are_numpys(statistic: str) -> None:
    task = mixed_task(np.random.default_rng(3), "cost", models=2, n=70)
    cost = task.metrics[statistic]
    assert isinstance(cost, Cost)
    whole = cost.values.mean(axis=0) if statistic == "mean" else np.percentile(cost.values, int(statistic[1:]), axis=0)
    assert difference(task, statistic).value == pytest.approx(np.log(whole[0] / whole[1]))
