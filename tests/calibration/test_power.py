"""How often a true difference is found, beside what theory says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from services.results.paired import binary
from services.results.paired.corrections import holm, within
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Difference, Terms
from services.results.statistics.metric_values import Floats
from tests.calibration.worlds import Unlike, by_cluster, cluster_answers, right_and_wrong

pytestmark = pytest.mark.calibration

PAIR = [(0, 1)]
WITHIN = 0.03


@pytest.mark.parametrize(
    ("n", "only_a", "only_b"), [(100, 0.15, 0.03), (277, 0.12, 0.06), (872, 0.08, 0.045), (5463, 0.05, 0.038)]
)
def test_mcnemars_power_is_that_of_theory(n: int, only_a: float, only_b: float) -> None:
    """Theory: rejections of the exact test, added up over the binomial distributions of discordant items and of A's."""
    trials = 10_000
    counts = default_rng(n).multinomial(n, [only_a, only_b, 1 - only_a - only_b], trials).astype(float)
    found = float(np.mean(binary.mcnemar(counts[:, 0], counts[:, 1]) <= 0.05))
    expected = 0.0
    for discordant in range(n + 1):
        chance = stats.binom.pmf(discordant, n, only_a + only_b)
        if chance < 1e-9 or discordant < 6:
            continue
        # The largest count that the exact two-sided test still rejects.
        most = int(stats.binom.ppf(0.025, discordant, 0.5)) - 1
        most += stats.binom.cdf(most + 1, discordant, 0.5) <= 0.025
        share = only_a / (only_a + only_b)
        tails = stats.binom.cdf(most, discordant, share) + stats.binom.sf(discordant - most - 1, discordant, share)
        expected += chance * float(tails)
    print(f"\nMcNemar, n = {n}, {only_a} against {only_b}: power {found:.3f}, theory {expected:.3f}")
    assert abs(found - expected) <= WITHIN


@pytest.mark.parametrize(("n", "discordant"), [(872, 0.12), (5463, 0.08), (14_042, 0.2)])
def test_the_smallest_difference_shown_is_found_in_80_percent(n: int, discordant: float) -> None:
    half = np.array([n * discordant / 2])
    smallest = float(binary.smallest_difference(np.array([float(n)]), half, half, 0.05)[0])
    chances = [(discordant + smallest) / 2, (discordant - smallest) / 2, 1 - discordant]
    counts = default_rng(80).multinomial(n, chances, 10_000).astype(float)
    found = float(np.mean(binary.mcnemar(counts[:, 0], counts[:, 1]) <= 0.05))
    print(f"\nn = {n}: a difference of {smallest:.4f} is found in {found:.3f}")
    assert abs(found - 0.8) <= WITHIN


@pytest.mark.parametrize(("n", "discordant"), [(872, 0.12), (14_042, 0.2)])
def test_the_smallest_difference_of_one_in_27_is_found_in_80_percent_after_holm(n: int, discordant: float) -> None:
    """Even where no other of the family is shown, which is the hardest step."""
    half, trials = round(n * discordant / 2), 10_000
    counted = Difference(0.0, n, only_a=half, only_b=half, smallest=1.0)
    smallest = within([counted] * 27, 0.05)[0].smallest or 0.0
    chances = [(discordant + smallest) / 2, (discordant - smallest) / 2, 1 - discordant]
    counts = default_rng(27).multinomial(n, chances, trials).astype(float)
    p = binary.mcnemar(counts[:, 0], counts[:, 1])
    found = np.mean([holm([own, *[1.0] * 26])[0] <= 0.05 for own in p])
    print(f"\nOne of 27, n = {n}: a difference of {smallest:.4f} is found in {found:.3f}")
    assert abs(found - 0.8) <= WITHIN


@pytest.mark.parametrize(
    ("sizes", "by_items"),
    [
        ((56, 71, 100), False),
        ((277, 408, 872, 1043, 5463), False),
        ((250,) * 20, False),
        # Of fewer items the exact test shows less than the normal distribution.
        ((277, 408, 872, 1043, 5463), True),
        ((100,) * 20 + (1500,), True),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, tuple) else "over items" if value else "over tasks",
)
def test_the_suites_power_is_that_of_theory(sizes: tuple[int, ...], by_items: bool) -> None:
    """Theory: the normal distribution with the true standard error, √Σ w² (ψ − d²)/n."""
    rng, trials, discordant = default_rng(21), 800, 0.14
    weights = np.array(sizes) / sum(sizes) if by_items else np.full(len(sizes), 1 / len(sizes))
    error = np.sqrt(sum(w**2 * discordant / n for w, n in zip(weights, sizes, strict=True)))
    for shift in (2.0, 2.8):
        gap = shift * error
        exact = np.sqrt(sum(w**2 * (discordant - gap**2) / n for w, n in zip(weights, sizes, strict=True)))
        found = smallest = 0.0
        for _ in range(trials):
            only_a, only_b = (discordant + gap) / 2, (discordant - gap) / 2
            groups = [[right_and_wrong(rng, n, 0.6, only_a, only_b, f"t{i}")] for i, n in enumerate(sizes)]
            difference = suite_differences(groups, PAIR, Terms(), by_items=by_items)[0]
            assert difference.p is not None
            assert difference.smallest is not None
            found += difference.p <= 0.05
            smallest += difference.smallest / trials
        expected = float(stats.norm.sf(1.96 - gap / exact) + stats.norm.cdf(-1.96 - gap / exact))
        print(
            f"\nSuite of {len(sizes)}, {gap:.3f}: power {found / trials:.3f}, theory {expected:.3f}; "
            f"shown at 80 %: {smallest:.3f}, theory {2.802 * error:.3f}"
        )
        assert abs(found / trials - expected) <= WITHIN
    assert smallest == pytest.approx(2.802 * error, rel=0.1)


def test_the_clustered_tests_power_is_that_of_theory() -> None:
    """Theory: the t test over clusters."""
    rng, trials, claims, values = default_rng(22), 2_000, 0, []
    for _ in range(trials):
        found = suite_differences([[by_cluster(cluster_answers(rng, 60, 8, (0.75, 0.66)))]], PAIR, Terms())[0]
        assert found.p is not None
        claims += found.p <= 0.05
        values.append(found.value or 0.0)
    expected = float(stats.nct.sf(stats.t.ppf(0.975, 59), 59, 0.09 / np.std(values)))
    print(f"\nClustered, 60 of 8: power {claims / trials:.3f}, theory {expected:.3f}")
    assert abs(claims / trials - expected) <= WITHIN


@pytest.mark.parametrize(
    "world",
    [
        Unlike(500, (0.5, 0.64), (0.995, 0.995)),
        Unlike(500, (0.6, 0.5), (0.98, 0.93)),
        Unlike(400, (0.9, 0.6), (0.97, 0.9)),
    ],
    ids=lambda world: f"{world.n}-{world.a}-{world.b}",
)
def test_the_power_of_matthews_correlation_is_that_of_theory_for_unlike_labels(world: Unlike) -> None:
    """Theory: normal distributions of the difference, and of that after an exchange, by what items add to either."""
    rng, trials, metric = default_rng(31), 700, "matthews_correlation"
    drawn = (
        task_differences([world.draw(rng, metric)], PAIR, Terms(resamples=200))[0][metric][0] for _ in range(trials)
    )
    found = sum((difference.p or 0.0) <= 0.05 for difference in drawn) / trials
    chances = world.chances()
    a, b, both = chances.sum(axis=2), chances.sum(axis=1), (chances.sum(axis=2) + chances.sum(axis=1)) / 2
    own = _adds(a)[:, :, None] - _adds(b)[:, None, :]
    exchanged = _adds(both)[:, :, None] - _adds(both)[:, None, :]
    error, under = (np.sqrt((chances * each**2).sum() / world.n) for each in (own, exchanged))
    least, gap = stats.norm.ppf(0.975) * under, world.truth(metric)
    expected = float(stats.norm.sf((least - gap) / error) + stats.norm.cdf((-least - gap) / error))
    print(f"\nUnlike labels, {world}: power {found:.3f}, theory {expected:.3f}")
    assert abs(found - expected) <= 0.04


def _adds(table: Floats) -> Floats:
    """What an item of each label and answer adds to the correlation of a (labels, answers) table, over the mean."""
    label, answer = (
        (place - share[1]) / np.sqrt(share[0] * share[1])
        for place, share in (
            (np.array([[0.0], [1.0]]), table.sum(axis=1)),
            (np.array([[0.0, 1.0]]), table.sum(axis=0)),
        )
    )
    correlation = (table * label * answer).sum()
    found: Floats = label * answer - correlation / 2 * (label**2 + answer**2)
    return found
