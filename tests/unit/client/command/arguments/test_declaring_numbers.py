"""Numbers that people type: each flag takes what fits and refuses the rest with one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone_client.command import main as run_command
from touchstone_client.command.arguments import declaring

HOSTILE = ("nan", "-nan", "inf", "-inf", "1e999", "-1e999", "-99999999999999999999", "9" * 30, "abc", "0x10", "1_0", "")
FLAGS = (
    "--limit", "--shots", "--repeats", "--sample-seed", "--temperature", "--top-p", "--top-k", "--max-tokens",
    "--context-length", "--seed", "--repeat-penalty", "--project-id", "--time-limit", "--budget-usd",
)  # fmt: skip


@pytest.mark.parametrize("flag", FLAGS)
def test_a_number_that_cannot_be_is_refused_with_one_sentence(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    for value in HOSTILE:
        with pytest.raises(SystemExit) as ended:
            run_command(["run", "--suite", "demo", "--endpoint", "e", "--model", "m", f"{flag}={value}"])
        said = capsys.readouterr().err.strip().splitlines()
        assert ended.value.code == 2, f"{flag}={value}"
        assert (len(said), flag in said[-1]) == (2, True), said
        assert "Traceback" not in said[-1]


READERS: dict[Callable[[str], float], tuple[float, float]] = {
    declaring.count: (1, 2**31 - 1),
    declaring.whole: (0, 2**31 - 1),
    declaring.days: (1, 36_500),
    declaring.project: (0, 2**63 - 1),
    declaring.seed: (-(2**63), 2**63 - 1),
}


def texts() -> st.SearchStrategy[str]:
    return st.one_of(st.text(max_size=8), st.integers().map(str), st.floats().map(str), st.sampled_from(HOSTILE))


@given(texts())
def test_readers_give_numbers_in_range_or_refuse(text: str) -> None:
    for value, (low, high) in _read(text):
        assert low <= value <= high


def _read(text: str) -> Iterator[tuple[float, tuple[float, float]]]:
    for reader, span in READERS.items():
        try:
            yield reader(text), span
        except argparse.ArgumentTypeError:
            continue
