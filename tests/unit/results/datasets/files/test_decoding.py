"""Bytes become texts, or are refused with what they are."""

from __future__ import annotations

import bz2
import io
import os
import zipfile
from random import Random

import pytest

from services.results.datasets.frames import Limits
from tests.unit.results.uploads import contents, packed, upload
from touchstone.v1.dataset_pb2 import Dataset

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + Random(0).randbytes(2000)
PLAIN = '{"prompt": "Größe? 你好 🙂"}\n{"prompt": "b", "custom_id": "ü"}\n'


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
        (PNG, "a PNG image"),
        (packed(PNG), "a PNG image"),
        (b"\xef\xbb\xbf" + PNG, "a PNG image"),
        (PNG + PLAIN.encode(), "a PNG image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF" + PLAIN.encode(), "a JPEG image"),
        (rb"{\rtf1\ansi Question}", "a rich text document"),
        (b"rows.jsonl".ljust(257, b"\0") + b"ustar  \0" + PLAIN.encode(), "a tar archive"),
        (packed(b"rows.jsonl".ljust(257, b"\0") + b"ustar\x0000" + PLAIN.encode()), "a tar archive"),
        (b"\0\0\0\x18ftypmp42" + bytes(range(256)), "binary, and not a text"),
        (Random(1).randbytes(5000), "binary, and not a text"),
        (b"\n" * 20 + Random(2).randbytes(5000) + PLAIN.encode(), "binary, and not a text"),
        (PLAIN.encode("utf-16-be"), "UTF-16 without the mark"),
    ],
)
def test_a_file_that_is_something_else_is_refused_with_its_name(data: bytes, reason: str) -> None:
    assert reason in upload(data).refused


@pytest.mark.parametrize("name", ["answers.jsonl", "picture.png", "table.csv"])
@pytest.mark.parametrize("format_", [Dataset.FORMAT_UNSPECIFIED, Dataset.FORMAT_CSV])
def test_a_binary_file_is_refused_as_a_whole_whatever_its_name_and_format(name: str, format_: Dataset.Format) -> None:
    for data in (PNG, packed(PNG), Random(3).randbytes(100_000)):
        found = upload(data, name=name, format=format_)
        assert found.refused.endswith("pload JSON, CSV, Excel (.xlsx) or Parquet, plain or compressed with gzip.")
        assert found.refused.count(". ") == 1
        assert found.bad is None


def test_wrong_characters_in_a_text_are_left_for_its_lines() -> None:
    """A text of another encoding, and one with a few control characters."""
    latin = "question,reference\n" + "Où est l'été à Orléans ?,là\n" * 20
    for data in (latin.encode("latin-1"), PLAIN.encode() + b'{"prompt": "a\0b"}\n', b'{"prompt": "\0\1\2\3"}\n'):
        assert "binary" not in str(upload(data).refusal)
    assert list(upload(PLAIN.encode() + b'{"prompt": "a\0b"}\n').reasons) == [3]


def test_an_excel_workbook_is_refused_with_its_name() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")

    assert "Excel" in upload(made.getvalue()).refused


def test_a_zip_bomb_is_stopped_by_its_ratio() -> None:
    line = b'{"prompt": "' + b"a" * 1_000_000 + b'"}\n'
    made = upload(packed(line * 200, 9))

    assert "over 300 bytes for each compressed one" in made.refused


def test_a_file_is_no_larger_than_the_limit_however_it_is_packed() -> None:
    limits = Limits(file_bytes=1000)

    assert contents(PLAIN.encode(), limits=limits)
    assert "more than 1,000 bytes" in upload(PLAIN.encode() * 50, limits=limits).refused
    assert "more than 1,000 bytes" in upload(packed(PLAIN.encode() * 50), limits=limits).refused


def test_random_bytes_are_refused() -> None:
    assert upload(os.urandom(200_000)).dataset is None


def test_gzip_that_gives_nothing_ends_at_the_limit_of_a_file() -> None:
    nothing = packed(b"")

    made = upload(nothing * 1000 + packed(PLAIN.encode()), limits=Limits(file_bytes=1000))

    assert made.refused == "The file has more than 1,000 bytes. Upload it in parts."
