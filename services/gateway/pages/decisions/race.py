"""A race on its page: what became of each model, and the evidence that another one is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from services.gateway.pages.decisions import drawing, sentences
from services.gateway.pages.decisions.drawing import NARROW, WIDE, Line
from services.gateway.pages.display import formatting
from touchstone.v1 import decision_pb2, job_pb2

_OUT = (decision_pb2.Racer.STATE_BEATEN, decision_pb2.Racer.STATE_WITHDRAWN)


@dataclass(frozen=True, slots=True)
class Side:
    """A model of a decision. `name` tells it from the others; `slot` is None for bundled baselines."""

    name: str
    role: str
    job: job_pb2.Job
    slot: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """A model with what became of it. `difference` is to the one that it is compared with, in points."""

    side: Side
    tone: str
    fate: str
    out: bool
    against: str
    difference: str
    interval: str
    side_by_side: str


@dataclass(frozen=True, slots=True)
class Race:
    """`charts` are a wide and a narrow one; none before the first answers."""

    rows: Sequence[Row]
    charts: Sequence[Markup]


def of(found: decision_pb2.Decision, models: Sequence[Side]) -> Race:
    """`models` are those of the race, in its order."""
    by_job = {side.job.job_id: side for side in models}
    rows = [_row(racer, by_job) for racer in found.racers]
    lines = [
        Line(row.tone, [(0, 0.0), *((point.pairs, point.worse) for point in racer.path)])
        for row, racer in zip(rows, found.racers, strict=True)
        if racer.path
    ]
    about = f"Evidence that another model is better, after each of {found.pairs:,} items"
    charts = [drawing.evidence_chart(lines, found.threshold, 0, about, width) for width in (WIDE, NARROW)]
    return Race(rows, charts if lines else [])


def _row(racer: decision_pb2.Racer, by_job: dict[str, Side]) -> Row:
    side, other = by_job[racer.job.job_id], by_job.get(racer.against_job_id)
    against = other.name if other else ""
    known = other is not None and racer.HasField("difference")
    ids = f"{racer.job.job_id},{racer.against_job_id}"
    return Row(
        side=side,
        tone=_tone(side.slot),
        fate=sentences.fate(racer, against),
        out=racer.state in _OUT,
        against=against,
        difference=formatting.change(racer.difference) if known else formatting.MISSING,
        interval=f"{formatting.change(racer.low)} to {formatting.change(racer.high)}" if known else "",
        side_by_side=f"/side-by-side?jobs={ids}" if racer.pairs and other else "",
    )


def _tone(slot: int | None) -> str:
    if slot is None:
        return "none"
    return f"m{slot % 8 + 1}{' dashed' if slot >= 8 else ''}"
