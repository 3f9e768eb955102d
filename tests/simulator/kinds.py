"""What is in the world of a seed. Each is drawn apart, so that worlds without it are what they were before there were
any with it."""

from __future__ import annotations

from random import Random

APART = 2**32
_WITH_DATASETS = 0.15
"""The share of worlds with datasets."""
_WITH_EXPERIMENTS = 0.05
"""The share of worlds with experiments; these have datasets, too."""
_WITH_JUDGES = 0.05
"""The same of worlds with judges of single jobs."""
_WITH_DECISIONS, _WITH_RACES = 0.03, 0.02
"""The shares of worlds with decisions between two models, and between more."""


def has_datasets(seed: int) -> bool:
    return has_experiments(seed) or has_judges(seed) or Random(seed + APART).random() < _WITH_DATASETS


def has_experiments(seed: int) -> bool:
    return Random(seed + 2 * APART).random() < _WITH_EXPERIMENTS


def has_judges(seed: int) -> bool:
    return Random(seed + 3 * APART).random() < _WITH_JUDGES


def has_decisions(seed: int) -> bool:
    return has_races(seed) or Random(seed + 5 * APART).random() < _WITH_DECISIONS


def has_races(seed: int) -> bool:
    return Random(seed + 8 * APART).random() < _WITH_RACES
