"""Numbers from outside: of providers, of other tools' logs, of messages and rows that earlier versions stored. Pure.

Every reader returns the number if it is finite and in its range, else None, which means unknown. It never returns 0
instead: that would be a wrong statement.
"""

from __future__ import annotations

import re

MOST_USD = 10_000.0
"""Highest cost of one answer, in US dollars."""
MOST_JOB_USD = 1e12
"""Highest cost of one job, in US dollars."""
MOST_TOKENS = 2**31 - 1
"""Most tokens of one answer: what the field of a result holds."""
MOST_COUNT = 2**53 - 1
"""Highest count of anything else, such as bytes or parameters: above it a float is not exact."""
MOST_PRICE = 1e6
"""Highest price of a million tokens, in US dollars."""
MOST_PARAMETERS_B = 1e6
"""Most parameters of a model, in billions."""
LEAST_LOG_PROBABILITY = -1e5
MOST_LOG_PROBABILITY = 10.0
"""The range for one token. Servers write -9999 for a probability of 0. A value above 0 is wrong, but the proof of a
server's log-likelihoods says in which way."""
MOST_STATISTIC = 1e12
"""The largest statistic of one answer, either way: sums of squares over any job stay finite."""
MOST_WAIT_S = 86_400.0
"""Longest wait that a provider may ask for, in seconds."""

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


def real(value: object, low: float, high: float) -> float | None:
    """The number if it is from `low` to `high`. A bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        return None
    return float(value) + 0.0


def whole(value: object, high: int = MOST_COUNT) -> int | None:
    """The whole number if it is from 0 to `high`; a float such as 12.0 is one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        return None
    return int(value) if int(value) == value else None


def answer_usd(value: object) -> float | None:
    """US dollars that one answer cost."""
    return real(value, 0.0, MOST_USD)


def job_usd(value: object) -> float | None:
    """US dollars that one job cost."""
    return real(value, 0.0, MOST_JOB_USD)


def parameters_b(text: str) -> float:
    """Billions of parameters in "7.6B", "qwen2.5:7b", "8x7b" or "smollm-135M-instruct"; 0 when it does not say."""
    sizes = []
    for experts, number, unit in _SIZE.findall(text):
        billions = float(number) * float(experts or 1)
        sizes.append(real(billions if unit in "bB" else billions / 1000, 0.0, MOST_PARAMETERS_B))
    return max(filter(None, sizes), default=0.0)
