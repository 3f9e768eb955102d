"""What reads items says of which jobs. Otherwise, it would find none of a job whose items are in the archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import services.results

ROOT = Path(services.results.__file__).parent
QUERIES = ROOT / "storage" / "queries"
OVER_ITEMS = re.compile(r"\b(?:FROM|JOIN|UPDATE|USING|INTO)\s+\(?items\b")

WITHOUT = {
    "archive/leaving.py": "lets items leave",
    "comparison/asked_again.py": "runs come from comparison/selection/runs.py",
    "comparison/common_items.py": "runs come from comparison/selection/runs.py",
    "comparison/expenses.py": "as above",
    "comparison/joint_reads.py": "as above",
    "experiments/runs.py": "asks experiments/answers.py first",
    "export/batch_rows.py": "items come from items/filters.py",
    "export/item_rows.py": "items come from items/filters.py",
    "mlflow/publishing.py": "asks experiments/runs.py first",
    "scores/task_counts.py": "called by scores/job_result.py, comparisons and side_by_side/matching.py",
    "scores/tip_diversity.py": "called by scores/job_result.py",
    "server.py": "asks whether there are any",
    "side_by_side/matching.py": "jobs come from side_by_side/listing.py",
    "side_by_side/page.py": "jobs come from side_by_side/listing.py",
    "storage/job_files.py": "leaves these jobs out, as their rows of answer_texts do not say",
    "storage/text_retention.py": "jobs without bytes of texts have none to drop",
    "backups/checking.py": "leaves these jobs out",
}
"""Modules that read items and do not say of which jobs, with the reason."""


def readers() -> Iterator[str]:
    names = {
        str(path.relative_to(QUERIES).with_suffix(""))
        for path in QUERIES.rglob("*.sql")
        if OVER_ITEMS.search(path.read_text())
    }
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if OVER_ITEMS.search(text) or any(f'"{name}"' in text for name in names):
            yield str(path.relative_to(ROOT))


def test_every_reader_of_items_says_of_which_jobs() -> None:
    found = set(readers())
    assert len(found) > 20
    silent = {name for name in found if "archived_items" not in (ROOT / name).read_text()}
    also = {name for name in found - silent if name in WITHOUT}
    assert silent <= set(WITHOUT), "call archived_items.require, or say here why not"
    assert set(WITHOUT) == silent | also, "no longer a reader"
