"""Influences of clusters on several metrics together."""

from __future__ import annotations

import numpy as np

from services.results.scores.influence import joint_draws


def test_joint_draws_have_the_clustered_covariance() -> None:
    rng = np.random.default_rng(4)
    moves = rng.normal(size=(200, 3)) @ np.array([[1, 0.8, 0], [0, 0.6, 0], [0, 0, 0.5]]) / 2000
    names = ("a", "b", "c")
    drawn = joint_draws(
        dict.fromkeys(names, 0.5),
        {name: (np.arange(200), moves[:, i]) for i, name in enumerate(names)},
        dict.fromkeys(names, (0.0, 1.0)),
        40_000,
        rng,
    )
    expected = moves.T @ moves
    np.testing.assert_allclose(np.cov([drawn[n] for n in names]), expected, atol=0.03 * expected.max())
