"""Lines and their bounds."""

from __future__ import annotations

from typing import Any

import pytest

from services.results.datasets.files.lines import MOST_BYTES
from tests.unit.results.uploads import contents, packed, upload


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n"])
def test_a_few_kilobytes_of_blank_lines_are_refused_at_once(name: str, blank: bytes) -> None:
    data = packed(b"prompt\nx\n" * (name == "rows.csv") + blank * 15_000_000)
    assert len(data) < 61_000 * len(blank)
    made = upload(data, name=name, template="{{prompt}}" * (name == "rows.csv"))

    assert "lines of the file are blank. Remove them." in made.refused


def test_blank_lines_between_rows_are_nothing_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.results.datasets.files.lines.MOST_BLANK", 100)
    assert len(contents(b'{"prompt": "a"}\n\n' * 1000)) == 1000
    assert "More than 100 lines of the file are blank" in upload(b'{"prompt": "a"}\n\n\n' * 1000).refused


def test_a_huge_line_is_named_and_never_held() -> None:
    def pieces() -> Any:
        yield b'{"prompt": "a"}\n{"prompt": "'
        for _ in range(200):
            yield b"x" * 500_000
        yield b'"}\n{"prompt": 5}\n'

    made = upload(pieces())

    assert made.reasons[2] == "The line has more than 2,097,152 bytes. Shorten it or leave it out."
    assert list(made.reasons) == [2, 3]


def test_a_line_of_the_longest_length_is_kept() -> None:
    line = b'{"prompt": "' + b"x" * (MOST_BYTES - 14) + b'"}'

    assert len(line) == MOST_BYTES
    assert len(contents(line + b"\n")) == 1
    assert list(upload(line + b" \n").reasons) == [1]


@pytest.mark.parametrize("data", [b'{"prompt": "a"}\r{"prompt": "b"}\r', b"q,r\ra,b\rc,d"])
def test_a_file_whose_lines_end_in_carriage_returns_alone_is_named_so(data: bytes) -> None:
    assert (
        "lines end in carriage returns alone" in upload(data, name="a.csv" if data[:1] == b"q" else "a.jsonl").refused
    )
    assert upload(b'{"prompt": "a"}\r').dataset is not None
