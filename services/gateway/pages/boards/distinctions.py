"""What tells leaderboard rows of one model apart, where names do not say it, and what tells item sets apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from services.gateway.pages.display import formatting
from services.gateway.reads import values
from touchstone.v1 import metric_pb2, results_service_pb2

LONGEST = 28
"""Characters of one setting that a row has room for."""

MOST_NAMED = 2
"""Tasks of a set that are named; more are counted."""


def distinctions(entries: Sequence[metric_pb2.LeaderboardEntry]) -> dict[str, str]:
    """By job id: what differs between rows of one model at one endpoint; nothing for rows that stand alone."""
    alike: dict[tuple[str, str], list[metric_pb2.LeaderboardEntry]] = {}
    for entry in entries:
        alike.setdefault((entry.endpoint, entry.model), []).append(entry)
    found: dict[str, str] = {}
    for rows in alike.values():
        if len(rows) > 1:
            found |= dict(zip((row.job_id for row in rows), _apart(rows), strict=True))
    return found


def _apart(rows: Sequence[metric_pb2.LeaderboardEntry]) -> list[str]:
    """The settings that differ; where two rows still read the same, the hashes of their configurations beside them."""
    settings = [_settings(row) for row in rows]
    names = dict.fromkeys(name for known in settings for name in known)
    differing = [name for name in names if len({known.get(name) for known in settings}) > 1]
    words = [", ".join(filter(None, (known.get(name, "") for name in differing))) for known in settings]
    read = [(text, row.name, row.alias) for text, row in zip(words, rows, strict=True)]
    return [
        text if read.count(key) == 1 else ", ".join(filter(None, (text, row.configuration[:6])))
        for text, key, row in zip(words, read, rows, strict=True)
    ]


def _settings(entry: metric_pb2.LeaderboardEntry) -> Mapping[str, str]:
    """A setting's words by its name, in the order they are read."""
    receipt = entry.receipt
    sent = values.members(receipt.parameters) or {}
    known = {
        "mode": formatting.mode(entry.mode),
        "shots": f"{entry.shots}-shot",
        "repeats": f"{entry.repeats} answers" if entry.repeats > 1 else "1 answer",
        **{name: _short(f"{name} {_plain(value)}") for name, value in sent.items()},
        "template": f"template: {receipt.template}" if receipt.template else "",
        "digest": f"weights {receipt.model_digest.removeprefix('sha256:')[:6]}" if receipt.model_digest else "",
    }
    return {name: words for name, words in known.items() if words}


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def item_set_choices(sets: Sequence[results_service_pb2.ItemSet]) -> list[tuple[str, str]]:
    """(item set, its words) for each, in the given order; sets that would read the same have their hash beside."""
    words = [_item_set_words(one, len({tuple(other.tasks) for other in sets}) > 1) for one in sets]
    seen = Counter(words)
    return [
        (one.item_set, text if seen[text] == 1 else f"{text}, {one.item_set[:6]}")
        for one, text in zip(sets, words, strict=True)
    ]


def _item_set_words(one: results_service_pb2.ItemSet, tasks_differ: bool) -> str:
    counted = f"{one.items:,} of {one.published_items:,}" if one.subset else f"all {one.items:,}"
    tasks = ""
    if tasks_differ and one.tasks:
        tasks = " and ".join(one.tasks) if len(one.tasks) <= MOST_NAMED else f"{len(one.tasks)} tasks"
    return ", ".join(filter(None, (counted, tasks, one.scoring, f"{one.configurations} ranked")))
