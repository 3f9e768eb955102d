"""JSON that every reader takes alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chat_requests.faults import WrongRowError
from services.chat_requests.strict_json import LineParser, dump, dump_fields, parse
from tests.growth import is_about_linear
from tests.unit.results.uploads import contents, upload


def test_one_json_object_over_many_lines_is_refused_once() -> None:
    assert "JSON Lines" in upload(b'\n{\n"prompt": "a"\n}\n').refused


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"prompt": "a"', "not JSON"),
        (b'{"prompt": "a"} {"prompt": "b"}', "Extra data"),
        (b"{'prompt': 'a'}", "not JSON"),
        (b'{"prompt": "a\x01"}', "Invalid control character"),
        (b'{"prompt": "a\0"}', "NUL bytes"),
        (b'{"prompt": "a\\u0000"}', "NUL character"),
        (b'{"prompt": "a", "metadata": {"k\\u0000": 1}}', "NUL character"),
        (b'{"prompt": "\\ud83d"}', "half a character (\\ud83d)"),
        (b'{"prompt": "a", "metadata": {"x": ["\\uDE42"]}}', "half a character"),
        (b'{"prompt": "a", "\\ud800": 1}', "half a character"),
        (b'{"prompt": "a", "prompt": "b"}', '"prompt" occurs twice'),
        (b'{"prompt": "a", "metadata": {"x": 1, "x": 1}}', '"x" occurs twice'),
        (b'{"prompt": "a", "temperature": NaN}', "NaN is not JSON"),
        (b'{"prompt": "a", "reference": -Infinity}', "-Infinity is not JSON"),
        (b'{"prompt": "a", "temperature": 1e999}', '"1e999" is too large'),
        (b'{"prompt": "a", "seed": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"prompt": "a", "seed": ' + b"9" * 400 + b"}", '"seed" must be'),
        (b'{"prompt": "a", "logit_bias": ' + b"9" * 400 + b"}", "too large"),
        (b'["]",' * 33 + b"1" + b',"["]' * 33, "nests more than 32"),
        (b'["\\"]",' * 33 + b"1" + b',"["]' * 33, "nests more than 32"),
        (b'{"prompt": "a", "metadata": ' + b"[" * 100_000 + b"}", "nests more than 32"),
        (b'{"prompt": "a", "metadata": {"x": ' + b"[" * 40 + b"]" * 40 + b"}}", "nests more than 32"),
        (b'{"prompt": "a", "metadata": {"x": ' + b'{"a":' * 40 + b"1" + b"}" * 40 + b"}}", "nests more than 32"),
    ],
)
def test_json_that_other_readers_would_take_otherwise_is_refused(line: bytes, reason: str) -> None:
    made = upload(b'{"prompt": "good"}\n' + line + b"\n")

    assert list(made.reasons) == [2]
    assert reason in made.reasons[2]


def test_escapes_that_only_look_wrong_are_kept() -> None:
    line = b'{"prompt": "\\\\u0000 \\\\ud800 \\ud83d\\ude42", "metadata": {"many": [[1],[2],[3]' + b",[]" * 40 + b"]}}"

    assert contents(line) == ["\\u0000 \\ud800 🙂"]


def test_a_line_of_a_hundred_thousand_names_takes_linear_time() -> None:
    def read(size: int) -> None:
        names = ",".join(f'"n{i}":1' for i in range(size))
        assert '"n5" occurs twice' in upload(f'{{"prompt":"a",{names},"n5":1}}\n'.encode()).reasons[1]
        assert "65,536" in upload(f'{{"prompt":"a",{names}}}\n'.encode()).reasons[1]

    assert is_about_linear(read, 100_000)


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 32 + b"1" + b"]" * 32 + b" ",
        b"[" + b"[1]," * 40 + b"1]",
        b'["' + b"[" * 40 + b'", "\\"[", [{}]]',
        b"[" + b"[1]," * 40_000 + b"1]",
    ],
)
def test_many_brackets_are_not_deep(line: bytes) -> None:
    assert parse(line) == json.loads(line)


_TOOLS = (
    '"tools": [{"name": "wetter \u00fc", "p": {"x": [1, {}]}}]',
    '"tools":[]',
    '"tools" : [1.5]',
    '"tools": {"a": 1}',
)
_AROUND = (
    '{{"prompt": "a", {}}}',
    '{{"body": {{{}, "n": 1}}, "custom_id": "1"}}',
    '{{"body": {{"m": 1}}, {}}}',
    '{{"metadata": {{{}}}}}',
    "[{{{}}}]",
    "{{{0}, {0}}}",
    '{{"a": {{{0}}}, {0}}}',
    '{{"say \\{}}}',
    '{{"say \\\\{}}}',
    '{{"x": "{}"}}',
    '{{"tools": 1, {}}}',
    '{{"p": "\\ud800", {}}}',
    '{{"p": "\\u0000", {}}}',
    '{{"p": "\ufffd", {}}}',
    '{{"deep": ' + "[" * 28 + "{{{}}}" + "]" * 28 + "}}",
    '{{"deep": ' + "[" * 29 + "{{{}}}" + "]" * 29 + "}}",
    "{{{}}} 1",
    "{{{}",
)


@given(st.lists(st.tuples(st.sampled_from(_AROUND), st.sampled_from(_TOOLS), st.sampled_from(["", "\ufeff", "x"]))))
def test_lines_that_repeat_their_tools_are_read_as_each_alone(lines: list[tuple[str, str, str]]) -> None:
    parser = LineParser()

    def come_to(read: Any, line: bytes) -> object:
        try:
            return json.dumps(read(line))
        except WrongRowError as wrong:
            return wrong.reason

    # Tools that are known from the first lines are those that most others repeat.
    for around, tools, before in [(_AROUND[0], _TOOLS[0], ""), *lines]:
        line = (before + around.format(tools)).encode()
        for one in (line, line.replace(b"prompt", b"\xff")):
            assert come_to(parser.parse, one) == come_to(parse, one)


def test_repeated_tools_are_shared_and_written_as_any_others() -> None:
    parser = LineParser()
    read = [parser.parse(b'{"prompt": "%d", "tools": [{"name": "f"}], "seed": 1}' % number) for number in range(3)]

    assert read[1]["tools"] is read[2]["tools"]
    assert [dump_fields(each) for each in read] == [dump(each) for each in read]
    assert len({dump_fields(each) for each in read}) == 3
