"""Figures as the command shows them. Metrics are in their own range, as in REST; times are as on the pages."""

from __future__ import annotations

import math

from google.protobuf.timestamp_pb2 import Timestamp

from services.words.durations import time_left, time_range
from services.words.refusals import counted
from touchstone.v1 import job_pb2
from touchstone.v1.endpoint_pb2 import Prices

MISSING = "–"


def text(value: object) -> str:
    """Any value: numbers with separators, a dash for no value, lists joined."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(text(part) for part in value) or MISSING
    return str(value)


def excerpt(value: object, width: int = 60) -> str:
    """One line of a long text."""
    line = " ".join(text(value).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def whole(value: float | None) -> str:
    """A count that is an estimate: 1,204."""
    return MISSING if value is None else f"{value:,.0f}"


def dollars(value: float | None) -> str:
    """$12.30, and below a dollar two figures: $0.42, $0.0042."""
    if value is None or not 0 <= value < math.inf:
        return MISSING
    if value == 0 or value >= 1:
        return f"${value:,.2f}"
    return f"${value:.{1 - math.floor(math.log10(value))}f}"


def cost(job: job_pb2.Job) -> str:
    """$0.42 of $5.00, at most $0.03 more in flight, and what lost calls may cost; empty where no price is known."""
    progress, budget = job.progress, job.spec.budget_usd
    if progress.HasField("cost_usd"):
        parts = [dollars(progress.cost_usd) + (f" of {dollars(budget)}" if budget else "")]
        parts += filter(None, [listed_on(job.receipt.prices)])
    elif budget:
        parts = [f"budget {dollars(budget)}"]
    else:
        return ""
    if (in_flight := progress.reserved_usd - progress.lost_usd) > 0:
        parts.append(f"at most {dollars(in_flight)} more in flight")
    if lost_calls := lost(job):
        parts.append(lost_calls)
    return ", ".join(parts)


def listed_on(prices: Prices) -> str:
    """list price as of 2026-10-03; empty for prices of another source."""
    return f"list price as of {prices.as_of}" if prices.source == Prices.SOURCE_LIST else ""


def lost(job: job_pb2.Job) -> str:
    """Up to 3 calls without a known price, up to $0.03; empty where no call was lost, or calls have no price."""
    progress = job.progress
    if not progress.lost_calls or not (progress.HasField("cost_usd") or job.spec.budget_usd):
        return ""
    return f"up to {counted(progress.lost_calls, 'call')} without a known price" + (
        f", up to {dollars(progress.lost_usd)}" if progress.lost_usd else ""
    )


def size(count: float) -> str:
    """12.3 MB, in powers of ten."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def score(value: float | None) -> str:
    """A metric in its own range: 0.8123."""
    return MISSING if value is None else f"{value:.4f}".replace("-", "−")


def signed(value: float | None) -> str:
    """A difference: +0.0123, −0.0045, and 0.0000 without a sign."""
    if value is None:
        return MISSING
    text = f"{value:+.4f}".replace("-", "−")
    return text if text.strip("+−0.") else text[1:]


def p_value(value: float | None) -> str:
    if value is None:
        return MISSING
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def span(low: float | None, high: float | None) -> str:
    """An interval of scores."""
    return "" if low is None or high is None else f"{score(low)} to {score(high)}"


def signed_span(low: float | None, high: float | None) -> str:
    """An interval of differences."""
    return "" if low is None or high is None else f"{signed(low)} to {signed(high)}"


def places(low: int, high: int) -> str:
    """A range of ranks: 2, 1–3."""
    if not low:
        return ""
    return str(low) if low == high else f"{low}–{high}"


def moment(stamp: Timestamp) -> str:
    """2026-11-20T14:04:09Z; empty when unset."""
    return f"{stamp.ToDatetime():%Y-%m-%dT%H:%M:%SZ}" if stamp.ToNanoseconds() else ""


def when(iso: object) -> str:
    """2026-11-20 14:04 of a `moment`, in UTC."""
    return str(iso)[:16].replace("T", " ") if iso else MISSING


def rate(value: float) -> str:
    """Three figures: 3.94, 47.3, 1,204."""
    if value <= 0:
        return MISSING
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def left(progress: job_pb2.Progress) -> str:
    """22 min left (18–27); empty while it is unknown."""
    if not progress.HasField("eta_s"):
        return ""
    around = ""
    if progress.HasField("eta_low_s") and progress.HasField("eta_high_s"):
        around = time_range(progress.eta_s, progress.eta_low_s, progress.eta_high_s)
    return f"{time_left(progress.eta_s)} left{f' ({around})' if around else ''}"
