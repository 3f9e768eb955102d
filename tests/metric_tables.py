"""The tables of metrics and of their labels in docs, made from their definitions: `make docs` renews them.

A table stands between `<!-- metrics of SERVICE -->` or `<!-- labels of metrics -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from services.telemetry.instruments import Label
from services.telemetry.metrics import METRICS

PAGE = Path(__file__).parents[1] / "docs/metrics.md"
_MARKED = re.compile(r"(?ms)^<!-- (metrics of [^>]+?|labels of metrics) -->\n.*?^<!-- end -->$")


def renewed(page: str) -> str:
    """The page with its tables as the definitions have them."""
    return _MARKED.sub(lambda found: "\n".join((f"<!-- {found[1]} -->", *_table(found[1]), "<!-- end -->")), page)


def names(page: str) -> list[str]:
    """The names of the page's tables."""
    return _MARKED.findall(page)


def tables() -> list[str]:
    """The names that a page must have: each set of services whose metrics are the same, and the labels."""
    services = dict.fromkeys(metric.services for metric in METRICS)
    return [*(f"metrics of {', '.join(names)}" for names in services), "labels of metrics"]


def _table(name: str) -> Iterator[str]:
    if name == "labels of metrics":
        yield from ("| label | of | |", "|---|---|---|")
        for label, of in _labels().items():
            values = ": " + ", ".join(f"`{value}`" for value in label.values) if label.values else ""
            yield f"| `{label.name}` | {', '.join(f'`{metric}`' for metric in of)} | {label.about}{values} |"
        return
    yield from ("| metric | type | labels | |", "|---|---|---|---|")
    for metric in METRICS:
        if name == f"metrics of {', '.join(metric.services)}":
            labels = ", ".join(f"`{label.name}`" for label in metric.labels)
            yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.about} |"


def _labels() -> dict[Label, list[str]]:
    """Each label, and the metrics that have it."""
    found: dict[Label, list[str]] = {}
    for metric in METRICS:
        for label in metric.labels:
            found.setdefault(label, []).append(metric.name)
    return found


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
