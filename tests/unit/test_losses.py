"""What a launcher tells of streams that are not what they were."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy.local.recovery.losses import Reach, losses
from deploy.local.recovery.repair import repair
from deploy.local.settings import LaunchError
from services import bus

BEFORE = Reach("2026-11-22T10:00:00Z", last=40, messages=10, missing=1)
REMADE = Reach("2026-11-23T10:00:00Z", last=50, messages=2, emptied=True)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (BEFORE, ""),
        (replace(BEFORE, last=60, messages=0), ""),
        (replace(BEFORE, last=39), "has lost its end: its last position is 39, and was 40."),
        (replace(BEFORE, messages=7, missing=4), "has lost 3 of 40 messages."),
        (replace(BEFORE, missing=4), ""),
        (replace(BEFORE, last=60, lost=1234), "has lost 1,234 bytes in a damaged block."),
        (
            replace(BEFORE, last=3, lost=1234),
            "has lost its end and 1,234 bytes in a damaged block: its last position is 3, and was 40.",
        ),
        (REMADE, "was lost."),
        (replace(REMADE, last=3, emptied=False), "was lost."),
        # Its description was damaged, and it was made again around its messages.
        (replace(REMADE, emptied=False), ""),
        (None, "was lost."),
    ],
)
def test_a_stream_that_is_not_what_it_was_is_named(now: Reach | None, said: str) -> None:
    told = losses({bus.KEPT: BEFORE}, {bus.KEPT: now} if now else {})
    assert told == ([(bus.KEPT, f"The stream KEPT (marks, annotations and names) {said}")] if said else [])


def test_streams_that_were_empty_or_not_there_have_lost_nothing() -> None:
    assert losses({}, {bus.KEPT: REMADE}) == []
    assert losses({bus.KEPT: replace(BEFORE, messages=0)}, {}) == []


def test_a_damaged_block_is_named_without_a_record_too() -> None:
    (told,) = losses({}, {bus.KEPT: replace(BEFORE, lost=7)})
    assert told[1].endswith("has lost 7 bytes in a damaged block.")


@pytest.mark.parametrize(
    ("stream", "settled", "age", "said"),
    [
        (f"KV_{bus.TOKENS}", True, timedelta(days=100), "(users' tokens) has lost all of its 10 messages."),
        (f"KV_{bus.TOKENS}", False, timedelta(0), ""),
        (f"KV_{bus.DELIVERIES}", True, timedelta(hours=5), "(calls of webhooks) has lost all of its 10 messages."),
        (f"KV_{bus.DELIVERIES}", True, timedelta(days=15), ""),
    ],
)
def test_a_stream_that_is_empty_is_named_unless_its_messages_may_have_gone_by_themselves(
    stream: str, settled: bool, age: timedelta, said: str
) -> None:
    before = replace(BEFORE, settled=settled)
    now = replace(BEFORE, messages=0, newest=(datetime.now(UTC) - age).isoformat())
    assert losses({stream: before}, {stream: now}) == ([(stream, f"The stream {stream} {said}")] if said else [])


def test_a_record_of_an_earlier_version_says_nothing_of_missing_messages() -> None:
    assert losses({bus.KEPT: replace(BEFORE, missing=None)}, {bus.KEPT: replace(BEFORE, messages=1, missing=10)}) == []


def test_a_repair_of_a_folder_that_holds_no_installation_makes_none(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"nothing to repair in .* Set --state-dir to the state directory\."):
        repair(tmp_path / "vra", print)
    assert list(tmp_path.iterdir()) == []
