"""Imports the record into an installation of its own, and prints ours beside theirs."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.record import authors, published
from tests.record.differences import Judged, reason
from tests.record.published import Record
from tests.stack import Stack, touchstone
from touchstone.v1 import item_result_pb2

_TOLERANCE = 0.01
"""Percent: what is published has two decimals."""
SCORERS = {"math_l5": "numeric", "crux": "exact_match"}
"""Of tasks that no suite of ours has: they are uploaded as datasets."""
_UNEXPLAINED = "UNEXPLAINED"


@dataclass(slots=True)
class Figures:
    """Counts of one record. `reasons` has for each reason, with the rule of ours, how many are right by which rule."""

    record: Record
    items: int = 0
    right_there: int = 0
    no_answer: int = 0
    right_here: int = 0
    unread: int = 0
    reasons: Counter[tuple[str, str, bool]] = field(default_factory=Counter)

    def percent(self, count: int) -> float:
        return 100 * count / self.items

    @property
    def reproduced(self) -> bool:
        there = self.percent(self.right_there), self.percent(self.no_answer)
        said = self.record.accuracy, self.record.no_answer
        return all(abs(one - other) <= _TOLERANCE for one, other in zip(there, said, strict=True))

    @property
    def unexplained(self) -> int:
        return sum(count for (why, _, _), count in self.reasons.items() if why == _UNEXPLAINED)

    def add(self, judged: Judged, numeric: bool) -> None:
        self.items += 1
        self.right_there += judged.right_there
        self.no_answer += judged.theirs is None
        self.right_here += judged.right_here
        self.unread += not judged.ours
        if judged.right_there != judged.right_here:
            why = reason(judged, numeric) or _UNEXPLAINED
            self.reasons[why, judged.how, judged.right_here] += 1


def main() -> int:
    """The exit code: 1 where a published figure is not reproduced, or a difference has no reason."""
    if not published.is_there():
        print(published.ABSENT)
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = list(_all(Path(folder)))
    exact = sum(figures.reproduced for figures in found)
    differing = sum(figures.reasons.total() for figures in found)
    unexplained = sum(figures.unexplained for figures in found)
    missed = [
        f"{figures.record.task} {figures.record.model}"
        for figures in found
        if not figures.reproduced and (figures.record.task, figures.record.model) != published.NOT_REPRODUCED
    ]
    print(
        f"\n{exact} of {len(found)} published accuracies and no-answer shares reproduced to {_TOLERANCE}; "
        f"{differing:,} of {sum(figures.items for figures in found):,} items differ, {unexplained:,} without a reason; "
        f"{time.monotonic() - began:.0f} s"
    )
    if missed:
        print(f"Not reproduced: {', '.join(missed)}.")
    return 1 if missed or unexplained else 0


def _all(folder: Path) -> Iterator[Figures]:
    stack = Stack(folder / "stack", [{"name": "base", "kind": "baseline"}], published.write_gsm8k(folder / "data"))
    stack.start()
    try:
        print(f"{'':48} {'':>5} {'published':>15} {'their rule':>15} {'our rule':>15}")
        print(f"{'task, model':48} {'items':>5} {'right  none':>15} {'right  none':>15} {'right  none':>15}")
        about = {task: upload(stack, folder, task) for task in SCORERS}
        for record in published.records():
            job_id = imported(stack, record, *about.get(record.task, ("--suite", record.task)))
            figures = compared(stack, record, job_id)
            _print(figures)
            yield figures
    finally:
        stack.stop()


def upload(stack: Stack, folder: Path, task: str) -> tuple[str, str]:
    """The record's questions as a dataset; returns what `touchstone import` is told of it."""
    file = folder / f"{task}.jsonl"
    rows = (
        {"custom_id": row["id"], "prompt": row["question"], "reference": right_answer(task, row["answer"])}
        for row in published.questions(task)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = touchstone(stack, "dataset", "upload", str(file), "--scorer", SCORERS[task])
    assert made.returncode == 0, made.stderr
    return "--dataset", made.stdout.split()[0]


def imported(stack: Stack, record: Record, *about: str) -> str:
    """The file as it was published becomes a run; returns the job's id."""
    made = touchstone(stack, "import", str(record.file), *about, "--model", record.model, "--format", "json")
    assert made.returncode == 0, f"{record.file}: {made.stderr}"
    return str(json.loads(made.stdout)["job_id"])


def compared(stack: Stack, record: Record, job_id: str) -> Figures:
    """Every output of the record by both rules; ours as the run's items are stored."""
    figures = Figures(record)
    suite = record.task not in SCORERS
    stored = {str(item.result.item) if suite else item.result.custom_id: item.result for item in stack.items(job_id)}
    for place, row in enumerate(record.rows()):
        result = stored.pop(str(place) if suite else str(row["id"]))
        figures.add(judge(record, row["output"][0], row["answer"], result), record.task != "crux")
    assert not stored, f"{record.file}: items without a line: {', '.join(sorted(stored)[:5])}"
    return figures


def judge(record: Record, output: str, reference: str, result: item_result_pb2.ItemResult) -> Judged:
    theirs = authors.answer(record.task, record.model, output)
    return Judged(
        output=output,
        reference=reference,
        theirs=theirs,
        right_there=theirs is not None and authors.is_right(record.task, theirs, reference),
        ours=result.prediction,
        how=result.extraction,
        right_here=bool(result.statistics["correct"]),
    )


def right_answer(task: str, answer: str) -> str:
    """Of two numbers in base 3 the digits, which are what the authors' rule compares with."""
    return f"{authors.number(answer):.0f}" if task == "math_l5" else answer


def _print(figures: Figures) -> None:
    record = figures.record
    pairs = (
        (record.accuracy, record.no_answer),
        (figures.percent(figures.right_there), figures.percent(figures.no_answer)),
        (figures.percent(figures.right_here), figures.percent(figures.unread)),
    )
    shown = " ".join(f"{f'{right:.2f} {none:5.2f}':>15}" for right, none in pairs)
    said = "" if figures.reproduced else "  not reproduced"
    print(f"{f'{record.task} {record.model}':48} {figures.items:5,} {shown}{said}", flush=True)
    for (why, how, here), count in sorted(figures.reasons.items(), key=lambda each: -each[1]):
        print(f"    {'+' if here else '-'}{count:<4} {why} ({how})", flush=True)
