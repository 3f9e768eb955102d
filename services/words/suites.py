"""The order of suites, and the refusal of an unknown one. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from services.errors import InvalidRequestError

DOCUMENT_SUITES = ("glue", "superglue", "mmlu", "medical")
"""The API document's order of suites. Only installed ones are offered."""
ECHO = "echo"
"""The baseline that repeats the prompt: it answers rows of datasets and no suite."""


def suite_order(suite: str) -> tuple[int, str]:
    """Sorts the API document's suites in its order, then the others by name."""
    return (DOCUMENT_SUITES.index(suite) if suite in DOCUMENT_SUITES else len(DOCUMENT_SUITES)), suite


def unknown_suite(announced: Iterable[str], stored: Iterable[str] = ()) -> InvalidRequestError:
    """The refusal of an unknown suite. It lists the suites that can be run, then those that were."""
    runnable = sorted(set(announced), key=suite_order)
    others = sorted({*stored} - {*runnable}, key=suite_order)
    supported = ", ".join([*runnable, *others]) or "none yet; start an evaluator"
    return InvalidRequestError(f"Invalid benchmark suite. Supported: {supported}", "suite")
