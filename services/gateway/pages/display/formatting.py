"""Figures and times in the product's style: 12,345; 79.5; 22 min; 14:04; minus as −, missing as –."""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from services.gateway.reads import values
from services.gateway.reads.jobs import moment
from services.gateway.reads.values import is_bounded
from services.words import phrases
from services.words.durations import time_left as time_left
from services.words.durations import time_range as time_range
from services.words.refusals import counted
from touchstone.v1 import job_pb2, metric_pb2, suite_pb2
from touchstone.v1.endpoint_pb2 import Prices

MISSING = "–"
_DIRECTIONS = {"RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI", "PDF", "PDI"}
"""Bidirectional classes of the characters that decide the direction of others."""
METRIC_WORDS = {
    "accuracy": "acc",
    "f1": "f1",
    "matthews_correlation": "mcc",
    "pearson": "r",
    "spearman": "ρ",
    "score": "score",
    "macro_f1": "macro f1",
    "exact_match": "em",
    "gender_parity": "parity",
    "regex_match": "pattern",
    "within_tolerance": "within",
    "token_f1": "token f1",
    "rouge_l": "rouge-l",
    "json_match": "json",
    "json_exact": "json exact",
    "calls_exact": "calls",
    "call_names": "call names",
    "call_arguments": "call arguments",
    "schema_valid": "valid",
}
READINGS = (
    ("strict", "strict: Answer: B"),
    ("marked", "marked: also \\boxed{B}"),
    ("lenient", "lenient: also in a sentence"),
)
"""Layers by which answers are read, as forms offer them."""
INTERVALS = {
    "wilson": "Wilson's interval of a share",
    "clustered": "from clustered standard errors, as answers to one item or of one group depend on each other",
    "t": "Student's t interval of a mean",
    "chi-square": "the values of all tables of shares that Pearson's chi-square test does not reject at 5 %",
    "bootstrap": "from resampled pairs of answer and reference",
    "stratified": "percentiles of the mean of resamples, drawn task by task",
}
"""How an interval was made, by the method of its metric."""
METRIC_NAMES = {
    "accuracy": "accuracy",
    "f1": "f1",
    "matthews_correlation": "mcc",
    "pearson": "pearson",
    "spearman": "spearman",
    "score": "suite score",
    "macro_f1": "macro f1",
    "exact_match": "exact match",
    "acc_norm": "accuracy, per character",
    "acc_bytes": "accuracy, per byte",
    "gender_parity": "gender parity",
    "regex_match": "pattern match",
    "within_tolerance": "within tolerance",
    "token_f1": "token F1",
    "rouge_l": "ROUGE-L",
    "json_match": "equal JSON fields",
    "json_exact": "JSON all equal",
    "calls_exact": "calls all right",
    "call_names": "names of calls",
    "call_arguments": "arguments of calls",
    "schema_valid": "valid JSON by the schema",
}


def metric_name(metric: str) -> str:
    """In words. That of a further scorer has the scorer's name, unless it is the same: "numeric: within tolerance"."""
    scorer, _, own = metric.rpartition(".")
    name = METRIC_NAMES.get(own, own)
    return f"{scorer}: {name}" if scorer not in ("", own) else name


def number(value: float) -> str:
    """Whole figures with thousands separators."""
    return f"{value:,.0f}".replace("-", "−")


def hundredths(value: float) -> str:
    """A metric × 100 with one decimal."""
    text = f"{value * 100:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", "−")


def change(difference: float) -> str:
    """A difference of two metrics in points, with its sign: +0.4, −1.2, 0.0."""
    text = hundredths(difference)
    return f"+{text}" if difference > 0 and text != "0.0" else text


def mean(metric: metric_pb2.Metric) -> str:
    """The estimate × 100; the range between its bounds if there is no estimate."""
    if metric.HasField("mean"):
        return hundredths(metric.mean)
    if metric.HasField("bound_low"):
        return span(metric.bound_low, metric.bound_high)
    return MISSING


def bounds(metric: metric_pb2.Metric) -> str:
    """The metric × 100 if all unanswered items were wrong, or right; empty when that is one value."""
    return span(metric.bound_low, metric.bound_high) if is_bounded(metric) else ""


def interval(metric: metric_pb2.Metric) -> str:
    """The 95 % interval × 100; empty where there is none."""
    return span(metric.ci95_low, metric.ci95_high) if metric.HasField("ci95_low") else ""


def span(low: float, high: float) -> str:
    joint = " to " if low < 0 else "–"
    return f"{hundredths(low)}{joint}{hundredths(high)}"


def shown(name: str) -> str:
    """The name with its direction controls written out: an unclosed one would reverse the rest of the line."""
    if name.isascii():
        return name
    return "".join(f"\\u{ord(c):04x}" if unicodedata.bidirectional(c) in _DIRECTIONS else c for c in name)


def p_value(p: float) -> str:
    """0.026, four decimals below .001, "< 0.0001", and 1 for what would round to it."""
    if p < 0.0001:
        return "< 0.0001"
    if p < 0.001:
        return f"{p:.4f}"
    return "1" if p > 0.9995 else f"{p:.3f}"


def share(part: float, whole: float) -> str:
    """A percentage with one decimal; missing where nothing is counted."""
    return f"{100 * part / whole:.1f} %" if whole else MISSING


def rate(value: float) -> str:
    """Three figures: 3.94, 47.3, 1,204."""
    if value <= 0 or not math.isfinite(value):
        return MISSING
    if value >= 100:
        return number(value)
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(seconds: float) -> str:
    """40 s, 37 min 40 s, 1 h 12 min, 3 h, 2 d 4 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _joined(whole // 60, "min", whole % 60, "s")
    if whole < 86400:
        return _joined(whole // 3600, "h", whole % 3600 // 60, "min")
    return _joined(whole // 86400, "d", whole % 86400 // 3600, "h")


def _joined(large: int, unit: str, small: int, part: str) -> str:
    return f"{large} {unit} {small} {part}" if small else f"{large} {unit}"


def rough(seconds: float) -> str:
    """An estimate of time, without false precision: 40 s, 22 min, 1 h 12 min."""
    return duration(seconds) if seconds < 60 else duration(60 * round(seconds / 60))


def milliseconds(value: float) -> str:
    """1.2 s, 30.0 s; below a second 120 ms; < 1 ms."""
    if value <= 0:
        return MISSING
    if value < 1:
        return "< 1 ms"
    return f"{value:.0f} ms" if value < 999.5 else f"{value / 1000:.1f} s"


def clock(stamp: Timestamp) -> str:
    """Time of day in UTC."""
    when = moment(stamp)
    return when.strftime("%H:%M") if when else MISSING


def after(seconds: float) -> str:
    """The time of day in UTC, this many seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%H:%M")


def stamp(when_: Timestamp) -> str:
    """today 14:04, yesterday 14:04, 7 Nov 09:12, 7 Nov 2025."""
    when = moment(when_)
    if when is None:
        return MISSING
    today = datetime.now(UTC)
    days = (today.date() - when.date()).days
    if days in (0, 1):
        return f"{('today', 'yesterday')[days]} {when:%H:%M}"
    if when.year == today.year or days < 180:
        return f"{when.day} {when:%b %H:%M}"
    return f"{when.day} {when:%b %Y}"


def date_time(when_: Timestamp) -> str:
    """27 Nov 2026 14:04 UTC, for what is read on another day."""
    when = moment(when_)
    return f"{when.day} {when:%b %Y %H:%M} UTC" if when else MISSING


def ago(stamp_: Timestamp) -> str:
    """2 h ago, yesterday, 3 d ago; never."""
    when = moment(stamp_)
    if when is None:
        return "never"
    seconds = (datetime.now(UTC) - when).total_seconds()
    if seconds < 90:
        return "now"
    if seconds < 5400:
        return f"{round(seconds / 60)} min ago"
    if seconds < 86400:
        return f"{round(seconds / 3600)} h ago"
    return "yesterday" if seconds < 172800 else f"{round(seconds / 86400)} d ago"


def cost(message: values.Priced) -> str:
    """$12.40; empty where it is not known."""
    known = values.cost(message)
    return "" if known is None else f"${dollars(known)}"


def listed_on(prices: Prices) -> str:
    """list price as of 2026-10-03; empty for prices of another source."""
    return f"list price as of {prices.as_of}" if prices.source == Prices.SOURCE_LIST else ""


def per_million(prices: Prices) -> str:
    """$2.50 in, $15.00 out."""
    return f"${dollars(prices.input)} in, ${dollars(prices.output)} out"


def lost(job: job_pb2.Job) -> str:
    """Up to 3 calls, up to $0.03; empty where no call was lost, or calls have no price."""
    calls = values.lost_calls(job)
    most = f", up to ${dollars(job.progress.lost_usd)}" if job.progress.lost_usd else ""
    return f"up to {plural(calls, 'call')}{most}" if calls else ""


def dollars(value: float) -> str:
    """12.40, 0.38, 0.0021: two decimals, for small sums two figures; "–" for anything but a number."""
    if not math.isfinite(value):
        return MISSING
    if value >= 0.1 or value <= 0:
        return f"{value:,.2f}"
    return f"{value:.{min(12, 1 - math.floor(math.log10(value)))}f}"


def gigabytes(size: int) -> str:
    value = size / 1024**3
    if not size:
        return MISSING
    return f"{value:.0f} GB" if value >= 20 else f"{value:.1f} GB"


def size(count: int) -> str:
    """A file's size: 812 B, 48.2 KB, 1.2 MB, 3.1 GB."""
    value, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def ordinal(place: int) -> str:
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def mode(mode_: suite_pb2.Mode) -> str:
    """How items are scored, in words."""
    return phrases.mode(mode_)


def plural(count: int, word: str) -> str:
    """1 job, 2 jobs."""
    return counted(count, word)
