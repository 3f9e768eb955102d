"""What a digest says of a series, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from touchstone.v1 import digest_pb2

DAYS, MOST_DAYS = 7, 366


def changes(series: digest_pb2.DigestSeries) -> Iterator[str]:
    """What is not as it was, apart from scores, in sentences without their ends."""
    if not series.HasField("before"):
        return
    before, after = series.before, series.after
    for name, then, now in (
        ("the served model", ", ".join(before.served_models), ", ".join(after.served_models)),
        ("the digest of the weights", before.model_digest[:12], after.model_digest[:12]),
        ("the server", before.server, after.server),
        ("Touchstone", before.software, after.software),
    ):
        if then != now:
            yield f"{name} was {then or 'unknown'} and is {now or 'unknown'}"
