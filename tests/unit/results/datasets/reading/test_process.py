"""The child process that reads an upload: what it takes of the machine, and when it ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from services.results.datasets.frames import Limits, frame, options
from tests.unit.results.datasets.children import CHILD, run
from touchstone.v1.dataset_pb2 import DatasetOptions


def test_a_child_without_options_ends_with_an_error() -> None:
    for start in (b"", b"\x01\x00\x00\x00\xffx", frame(2, b"")):  # type: ignore[arg-type]
        assert subprocess.run(CHILD, input=start, capture_output=True, check=False).returncode == 2


def test_a_child_whose_output_nobody_reads_ends_without_a_word() -> None:
    child = subprocess.Popen(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.close()
    child.stdin.write(options(Limits(), DatasetOptions()) + b'{"prompt": "a"}\n')
    child.stdin.close()

    assert child.wait(30) == 0
    assert child.stderr is not None
    assert child.stderr.read() == b""


@pytest.mark.parametrize(
    "unit",
    [
        b"{},",
        *(
            pytest.param(unit, marks=pytest.mark.stack)
            for unit in (b"[],", b'"",', b"1,", b'{"a":1},', b'["\\ud83d\\ude42"],', b"1.5,")
        ),
    ],
)
def test_no_line_makes_the_child_large(unit: bytes) -> None:
    inside = unit * (2_000_000 // len(unit))
    made = run([b'{"prompt": "a", "metadata": {"x": [' + inside[:-1] + b"]}}\n"] * 3)

    assert made.outcome.bad is not None
    assert made.megabytes < 150


def test_names_without_end_do_not_make_the_child_large() -> None:
    names = ",".join(f'"{i:x}":1' for i in range(220_000)).encode()
    made = run([b'{"prompt": "a", ' + names + b"}\n"] * 3)

    assert made.outcome.bad is not None
    assert made.megabytes < 150


@pytest.mark.stack
def test_a_gigabyte_of_a_million_rows_takes_little_memory() -> None:
    text = "A 23-year-old woman " * 50

    def pieces() -> Iterator[bytes]:
        for start in range(0, 1_000_000, 1000):
            yield b"".join(
                b'{"custom_id":"request-%d","prompt":"%d %s"}\n' % (i, i, text.encode())
                for i in range(start, start + 1000)
            )

    made = run(pieces())

    assert made.outcome.dataset is not None
    assert made.outcome.dataset.rows == 1_000_000
    assert made.outcome.dataset.bytes > 10**9
    assert made.megabytes < 150
