"""Numbers that people type: each flag takes what fits and refuses the rest with one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone_client.command import arguments
from touchstone_client.command import main as run_command

HOSTILE = ("nan", "-nan", "inf", "-inf", "1e999", "-1e999", "-99999999999999999999", "9" * 30, "abc", "0x10", "1_0", "")
REAL = ("--temperature", "--top-p", "--repeat-penalty", "--budget-usd")
FLAGS = (
    "--limit", "--shots", "--repeats", "--sample-seed", "--temperature", "--top-p", "--top-k", "--max-tokens",
    "--context-length", "--seed", "--repeat-penalty", "--project-id", "--time-limit", "--budget-usd",
)  # fmt: skip


@pytest.mark.parametrize("flag", FLAGS)
def test_a_number_that_cannot_be_is_refused_with_one_sentence(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    # A real number may be as large as it likes here: the scheduler knows its range.
    values = HOSTILE[:6] + HOSTILE[8:-2] if flag in REAL else HOSTILE
    for value in values:
        with pytest.raises(SystemExit) as ended:
            run_command(["run", "--suite", "demo", "--endpoint", "e", "--model", "m", f"{flag}={value}"])
        said = capsys.readouterr().err.strip().splitlines()
        assert ended.value.code == 2, f"{flag}={value}"
        assert (len(said), flag in said[-1]) == (2, True), said
        assert "Traceback" not in said[-1]


READERS: dict[Callable[[str], float], tuple[float, float]] = {
    arguments.count: (1, 2**31 - 1),
    arguments.whole: (0, 2**31 - 1),
    arguments.days: (1, 36_500),
    arguments.project: (0, 2**63 - 1),
    arguments.seed: (-(2**63), 2**63 - 1),
}


def texts() -> st.SearchStrategy[str]:
    return st.one_of(st.text(max_size=8), st.integers().map(str), st.floats().map(str), st.sampled_from(HOSTILE))


@given(texts())
def test_readers_give_numbers_in_range_or_refuse(text: str) -> None:
    for value, (low, high) in _read(text):
        assert low <= value <= high


def _read(text: str) -> Iterator[tuple[float, tuple[float, float]]]:
    known = {**READERS, arguments.finite: (-1.8e308, 1.8e308), arguments.money: (0, 1.8e308)}
    for reader, span in known.items():
        try:
            yield reader(text), span
        except argparse.ArgumentTypeError:
            continue
