"""Files that are broken, foreign or meant to harm: refused with a sentence, or read; never a crash."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import time
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.results.datasets.frames import Limits
from services.results.datasets.reading.custom_ids import CustomIds
from services.results.datasets.reading.lines import MOST_BYTES
from tests.unit.results.uploads import batch_line, jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset
from touchstone.v1.scoring_pb2 import Scoring

PLAIN = '{"prompt": "Größe? 你好 🙂"}\n{"prompt": "b", "custom_id": "ü"}\n'


def packed(data: bytes, level: int = 9) -> bytes:
    """The same bytes at any second: they stand in the names of tests, which all workers must collect alike."""
    return gzip.compress(data, level, mtime=0)


def contents(data: bytes, **options: Any) -> list[str]:
    return [row.messages[0].content for row in upload(data, **options).rows]


# -- encodings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n \r\n"])
def test_every_unicode_encoding_with_a_mark_is_read(encoding: str, end: str) -> None:
    mark = "\ufeff" if encoding in ("utf-16-be", "utf-16-le") else ""
    data = (mark + PLAIN.replace("\n", end)).encode(encoding)

    assert contents(data) == ["Größe? 你好 🙂", "b"]
    assert contents(packed(data)) == ["Größe? 你好 🙂", "b"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_it_does_not_matter_how_the_bytes_arrive(size: int) -> None:
    for data in (PLAIN.encode(), PLAIN.encode("utf-16"), packed(PLAIN.encode("utf-8-sig"))):
        pieces = [data[i : i + size] for i in range(0, len(data), size)]

        assert upload(pieces).dataset == upload(data).dataset


def test_bytes_that_are_not_utf_8_are_named_by_line_and_byte() -> None:
    made = upload(b'{"prompt": "a"}\n' + '{"prompt": "Größe"}'.encode("latin-1") + b"\n")

    assert made.reasons == {2: "Byte 15 of the line, 0xF6, is not UTF-8. Save the file as UTF-8."}


def test_utf_16_without_a_mark_is_named_by_its_nul_bytes() -> None:
    made = upload(PLAIN.encode("utf-16-le"))

    assert "NUL bytes" in made.reasons[1]


@pytest.mark.parametrize("data", [b"\xff\xfe{\0\x00", b"\xff\xfe\x00\xd8a\0", b"\xfe\xff\xd8\x00\x00a"])
def test_broken_utf_16_is_refused(data: bytes) -> None:
    assert "not valid UTF-16" in upload(data).refused


def test_a_mark_in_the_middle_of_joined_files_is_no_part_of_the_text() -> None:
    assert contents(PLAIN.encode("utf-8-sig") + '{"prompt": "c"}'.encode("utf-8-sig"))[2] == "c"


# -- compressed and foreign files --------------------------------------------------------------------------------------


def test_gzip_may_have_members_and_padding() -> None:
    first, second = PLAIN.encode().splitlines(keepends=True)

    assert len(contents(packed(first) + packed(b"") + packed(second) + b"\0" * 500)) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (packed(PLAIN.encode())[:-3], "ends too early"),
        (b"\x1f\x8b", "ends too early"),
        (packed(PLAIN.encode()) + b"tail", "damaged"),
        (packed(PLAIN.encode() * 9).replace(b"\x00\x03", b"\x00\x04", 1)[:20] + b"x" * 50, "damaged"),
        (packed(packed(PLAIN.encode())), "gzip twice"),
        (bz2.compress(PLAIN.encode()), "bzip2"),
        (b"PAR1\x15\x04", "Parquet"),
        (b"%PDF-1.7\n", "PDF"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x28\xb5\x2f\xfd\x04", "Zstandard"),
    ],
)
def test_a_file_that_is_something_else_is_refused_with_its_name(data: bytes, reason: str) -> None:
    assert reason in upload(data).refused


def test_an_excel_workbook_is_refused_with_its_name() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")

    assert "Excel" in upload(made.getvalue()).refused


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n"])
def test_a_few_kilobytes_of_blank_lines_are_refused_at_once(name: str, blank: bytes) -> None:
    data = packed(b"prompt\nx\n" * (name == "rows.csv") + blank * 15_000_000)
    assert len(data) < 61_000 * len(blank)
    started = time.process_time()
    made = upload(data, name=name, template="{{prompt}}" * (name == "rows.csv"))

    assert "lines of the file are blank. Remove them." in made.refused
    assert time.process_time() - started < 5


def test_blank_lines_between_rows_are_nothing_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.results.datasets.reading.lines.MOST_BLANK", 100)
    assert len(contents(b'{"prompt": "a"}\n\n' * 1000)) == 1000
    assert "More than 100 lines of the file are blank" in upload(b'{"prompt": "a"}\n\n\n' * 1000).refused


@pytest.mark.parametrize("line", [b"0\n", b"{}\n", b'{"prompt": "a"}\n'])
def test_a_small_file_may_take_little_work(line: bytes) -> None:
    limits = Limits(small_cpu_s=0)
    data = packed(line * (15_000_000 // len(line)))
    began = time.process_time()
    made = upload(data, limits=limits)

    assert "more work than a file of its size may" in made.refused
    assert f"for {len(data):,} bytes" in made.refused
    assert time.process_time() - began < 8
    assert Limits().work_s(61_000) < 6
    assert Limits().work_s(10**9) == Limits().cpu_s


def test_a_zip_bomb_is_stopped_by_its_ratio() -> None:
    line = b'{"prompt": "' + b"a" * 1_000_000 + b'"}\n'
    started = time.process_time()
    made = upload(packed(line * 200, 9))

    assert "over 300 bytes for each compressed one" in made.refused
    assert time.process_time() - started < 10


def test_a_file_is_no_larger_than_the_limit_however_it_is_packed() -> None:
    limits = Limits(file_bytes=1000)

    assert contents(PLAIN.encode(), limits=limits)
    assert "more than 1,000 bytes" in upload(PLAIN.encode() * 50, limits=limits).refused
    assert "more than 1,000 bytes" in upload(packed(PLAIN.encode() * 50), limits=limits).refused


# -- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf", packed(b""), b"\xff\xfe"])
def test_an_empty_file_holds_no_rows(data: bytes) -> None:
    assert "no rows" in upload(data).refused


@pytest.mark.parametrize(
    "data", [b'[{"prompt": "a"}]', b'\xef\xbb\xbf[\n{"prompt": "a"}\n]', b'\n{\n"prompt": "a"\n}\n']
)
def test_one_json_value_over_many_lines_is_refused_once(data: bytes) -> None:
    assert "JSON Lines" in upload(data).refused


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


def test_more_rows_or_lines_than_the_limit_are_refused() -> None:
    limits = Limits(rows=3)

    assert "more than 3 rows" in upload(b'{"prompt": "a"}\n' * 4, limits=limits).refused
    assert "more than 15 lines" in upload(b"\n" * 16, limits=limits).refused


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
        (b'{"prompt": "a", "prompt": "b"}', '"prompt" stands twice'),
        (b'{"prompt": "a", "metadata": {"x": 1, "x": 1}}', '"x" stands twice'),
        (b'{"prompt": "a", "temperature": NaN}', "NaN is not JSON"),
        (b'{"prompt": "a", "reference": -Infinity}', "-Infinity is not JSON"),
        (b'{"prompt": "a", "temperature": 1e999}', '"1e999" is too large'),
        (b'{"prompt": "a", "seed": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"prompt": "a", "seed": ' + b"9" * 400 + b"}", '"seed" is'),
        (b'{"prompt": "a", "min_p": ' + b"9" * 400 + b"}", "too large"),
        (b'{"prompt": "a", "metadata": ' + b"[" * 100_000 + b"}", "nests more than 32"),
        (b'{"prompt": "a", "metadata": {"x": ' + b"[" * 40 + b"]" * 40 + b"}}", "nests more than 32"),
        (b'{"prompt": "a", "metadata": {"x": ' + b'{"a":' * 40 + b"1" + b"}" * 40 + b"}}", "nests more than 32"),
    ],
)
def test_json_that_other_readers_would_take_otherwise_is_refused(line: bytes, reason: str) -> None:
    made = upload(b'{"prompt": "good"}\n' + line + b"\n")

    assert list(made.reasons) == [2]
    assert reason in made.reasons[2]


def test_a_broken_first_line_does_not_make_the_others_wrong() -> None:
    made = upload(b"# rows of May\n" + jsonl(*(batch_line(str(n)) for n in range(5))))

    assert list(made.reasons) == [1]
    assert upload(b"#\n" * 300).bad is not None


def test_escapes_that_only_look_wrong_are_kept() -> None:
    line = b'{"prompt": "\\\\u0000 \\\\ud800 \\ud83d\\ude42", "metadata": {"many": [[1],[2],[3]' + b",[]" * 40 + b"]}}"

    assert contents(line) == ["\\u0000 \\ud800 🙂"]


def test_a_line_of_a_hundred_thousand_names_takes_linear_time() -> None:
    names = ",".join(f'"n{i}":1' for i in range(100_000))
    started = time.process_time()

    assert '"n5" stands twice' in upload(f'{{"prompt":"a",{names},"n5":1}}\n'.encode()).reasons[1]
    assert "65,536" in upload(f'{{"prompt":"a",{names}}}\n'.encode()).reasons[1]
    assert time.process_time() - started < 5


def test_reasons_are_short_and_can_be_shown() -> None:
    hostile = "<b>\x1b[31m\u202e\n" + "x" * 500
    made = upload(jsonl({"prompt": "a", "custom_id": hostile[:400]}, {"prompt": "b", "custom_id": hostile[:400]}))
    reason = made.reasons[2]

    assert len(reason) <= 300
    assert reason.isprintable()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a\0.csv", "x" * 5000, "🙂.jsonl", ".csv", "..", "/"])
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    assert upload(b'{"prompt": "a"}\n', name=name).dataset or name.endswith(".csv")


# -- anything at all ---------------------------------------------------------------------------------------------------

_KEYS = st.sampled_from(
    (
        *("custom_id", "method", "url", "body", "messages", "prompt", "reference", "metadata", "role", "content"),
        *("extra", "temperature", "max_tokens", "seed", "stop", "n", "stream", "tools", "model", "q", "type", "text"),
        "response_format",
    )
)
_TEXTS = st.text() | st.sampled_from(["POST", "/v1/chat/completions", "user", "system", "text", "A", "", "5"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS | st.text(), inner, max_size=5),
    max_leaves=12,
)
_BODIES = st.dictionaries(_KEYS, _VALUES, max_size=4).map(lambda body: batch_line(**{"x": 1} | body))
_OBJECTS = st.dictionaries(_KEYS | st.text(), _VALUES, max_size=6) | _BODIES
_FORMATS = st.sampled_from([*Dataset.Format.values(), 77])
_TEMPLATES = st.sampled_from(["", "{{q}}", "{{q.a}} {{prompt}}", '[{"role": "user", "content": "{{q}}"}]', "[{", "{{"])
_SCORINGS = st.builds(
    Scoring,
    scorer=st.sampled_from(["", "choice", "numeric", "regex", "json", "token_f1", "?"]),
    reference_field=st.sampled_from(["", "q", "metadata.q", "reference"]),
    answer_pattern=st.sampled_from(["", "(", "(a+)+$"]),
)
_NAMES = st.sampled_from(["a.jsonl", "a.csv", ""])


@settings(max_examples=150)
@given(
    data=st.binary(max_size=400),
    head=st.sampled_from([b"", b"\xff\xfe", b"\xef\xbb\xbf", b"q,r\n"]),
    name=_NAMES,
    template=_TEMPLATES,
)
def test_any_bytes_become_a_dataset_or_reasons(data: bytes, head: bytes, name: str, template: str) -> None:
    upload(head + data, name=name, template=template)
    upload(packed(head + data), name=name, template=template)
    upload(b"\x1f\x8b\x08" + data, name=name, template=template)


@settings(max_examples=300)
@given(
    rows=st.lists(_OBJECTS, min_size=1, max_size=5),
    format_=_FORMATS,
    template=_TEMPLATES,
    scoring=_SCORINGS,
    id_field=st.sampled_from(["", "q"]),
)
def test_any_json_becomes_a_dataset_or_reasons(
    rows: list[dict[str, Any]], format_: Dataset.Format, template: str, scoring: Scoring, id_field: str
) -> None:
    options: dict[str, Any] = {"template": template, "scoring": scoring, "custom_id_field": id_field}
    made = upload(jsonl(*rows), format=format_, **options)

    if made.bad is not None:
        assert 0 < len(made.bad.lines) <= made.bad.total <= len(rows)
        assert all(0 < len(line.reason) <= 300 and line.reason.isprintable() for line in made.bad.lines)
    if made.dataset is not None:
        assert all(json.loads(row.reference) is not None for row in made.rows if row.reference)
        assert all(isinstance(json.loads(row.metadata), dict) for row in made.rows if row.metadata)


@pytest.mark.parametrize("data", [b'{"prompt": "a"}\r{"prompt": "b"}\r', b"q,r\ra,b\rc,d"])
def test_a_file_whose_lines_end_in_carriage_returns_alone_is_named_so(data: bytes) -> None:
    assert (
        "lines end in carriage returns alone" in upload(data, name="a.csv" if data[:1] == b"q" else "a.jsonl").refused
    )
    assert upload(b'{"prompt": "a"}\r').dataset is not None


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=3), max_size=6), st.sampled_from(["\n", "\r\n", "\r"])
)
def test_any_cells_become_a_dataset_or_reasons(rows: list[list[str]], end: str) -> None:
    text = "q,r" + end + end.join(",".join(row) for row in rows)
    upload(text.encode("utf-8", "replace"), name="a.csv", template="{{q}}")


@given(st.lists(st.text(max_size=3), max_size=300))
def test_ids_are_found_again_with_their_lines(ids: list[str]) -> None:
    known, lines = CustomIds(), dict[str, int]()
    for line, custom_id in enumerate((each.encode("utf-8", "replace").decode() for each in ids), start=1):
        assert known.add(custom_id, line) == lines.get(custom_id, 0)
        lines.setdefault(custom_id, line)


def test_a_hundred_thousand_ids_are_told_apart() -> None:
    known = CustomIds()

    assert not any(known.add(f"id-{i}", i + 1) for i in range(100_000))
    assert [known.add(f"id-{i}", 1_000_000) for i in range(0, 100_000, 9_999)] == list(range(1, 100_001, 9_999))


def test_random_bytes_are_refused() -> None:
    assert upload(os.urandom(200_000)).dataset is None


def test_gzip_that_gives_nothing_ends_at_the_limit_of_a_file() -> None:
    nothing = packed(b"")

    made = upload(nothing * 1000 + packed(PLAIN.encode()), limits=Limits(file_bytes=1000))

    assert made.refused == "The file has more than 1,000 bytes. Upload it in parts."


def test_a_template_names_no_column_of_thousands_of_dots() -> None:
    name = "a." * 10_000 + "a"

    made = upload(b'{"a": {"b": 1}}\n', template=f"{{{{{name}}}}}")

    assert made.refused == 'The template names "a.a.a.a.a.a.a.a.a.a.…", over 200 characters. Rename the column.'


def test_a_file_that_takes_too_much_work_is_refused() -> None:
    made = upload(jsonl(*({"prompt": str(number)} for number in range(100))), limits=Limits(cpu_s=0))

    assert made.refused.startswith("The file takes more than 0 s of work.")
