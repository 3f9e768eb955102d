"""Forms with a file as they arrive: in any pieces, whole or refused."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.errors import InvalidRequestError
from services.gateway.uploads import body, parts
from tests.unit.gateway.uploads.forms import pieces

KNOWN = ("scorer", "template")
TYPE = "multipart/form-data; boundary=xyz"


def part(name: str, data: bytes, *more: str, file_name: str | None = None) -> bytes:
    named = "" if file_name is None else f'; filename="{file_name}"'
    head = "\r\n".join([f'Content-Disposition: form-data; name="{name}"{named}', *more])
    return b"--xyz\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n"


END = b"--xyz--\r\n"


async def read(data: bytes, cuts: Sequence[int] = ()) -> tuple[dict[str, str], str | None, bytes]:
    sent = body.Form(pieces(data, cuts), parts.boundary(TYPE), KNOWN)
    fields = await sent.fields()
    return fields, sent.file_name, b"".join([piece async for piece in sent.file()])


@given(
    st.lists(st.integers(0, 10**6), max_size=40),
    st.one_of(st.binary(max_size=300), st.text("\r\n-xyz", max_size=120).map(str.encode)),
)
async def test_a_form_is_the_same_in_whatever_pieces_it_comes(cuts: list[int], data: bytes) -> None:
    if b"\r\n--xyz" in b"\r\n" + data:
        return
    whole = (
        part("scorer", b"choice")
        + part("template", "é\n{{a}}".encode())
        + part("file", data, file_name="a.jsonl")
        + END
    )
    assert await read(whole, cuts) == ({"scorer": "choice", "template": "é\n{{a}}"}, "a.jsonl", data)


async def test_a_file_may_have_no_name_and_the_end_may_be_followed_by_anything() -> None:
    assert await read(part("file", b"{}") + END + b"whatever" * 100) == ({}, None, b"{}")


@given(st.lists(st.integers(0, 10**6), max_size=40))
async def test_fields_that_may_come_late_are_given_after_the_file(cuts: list[int]) -> None:
    data = part("scorer", b"x") + part("file", b"{}", file_name="a") + part("template", b"y") + END
    sent = body.Form(pieces(data, cuts), parts.boundary(TYPE), KNOWN, late=("template",))
    assert await sent.fields() == {"scorer": "x"}
    assert [piece async for piece in sent.file()]
    assert sent.given == {"scorer": "x", "template": "y"}


FILE = part("file", b"{}", file_name="a")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (FILE + part("scorer", b"x") + part("scorer", b"y") + END, "scorer is given more than once. Give it once."),
        (part("scorer", b"x") + FILE + part("scorer", b"y") + END, "scorer is given more than once. Give it once."),
        (FILE + part("template", b"x") + END, "'template' comes after the file. Send it before the file"),
        (FILE + part("scorer", b"x") + FILE + END, "The form has two files. Send each in its own upload."),
        (FILE + part("scorer", b"x"), "The form ends before its last boundary. Send it again completely."),
    ],
)
async def test_late_fields_are_refused_like_early_ones(data: bytes, reason: str) -> None:
    sent = body.Form(pieces(data), parts.boundary(TYPE), KNOWN, late=("scorer",))
    await sent.fields()
    with pytest.raises(InvalidRequestError) as refused:
        [piece async for piece in sent.file()]
    assert reason in refused.value.message


REFUSED = [
    (END, "The form has no file. Send it as the part called 'file'."),
    (part("scorer", b"x") + END, "The form has no file."),
    (FILE + FILE + END, "The form has two files. Send each in its own upload."),
    (FILE + part("scorer", b"x") + END, "'scorer' comes after the file. Send it before the file."),
    (part("upload", b"{}", file_name="a") + END, "The file is in a part called 'upload'. Call it 'file'."),
    (part("nope", b"x") + FILE + END, "'nope' is not a field of this form. Its fields: scorer, template, file."),
    (part("scorer", b"x") + part("scorer", b"y") + FILE + END, "scorer is given more than once. Give it once."),
    (part("scorer", b"\xff") + FILE + END, "scorer is not UTF-8."),
    (part("template", b"x" * (body.MOST_FIELD_BYTES + 1)) + FILE + END, "template has more than 131,072 bytes."),
    (FILE, "The form ends before its last boundary. Send it again completely."),
    (FILE[:-10], "The form ends before its last boundary."),
    (part("file", b"x" * 1000)[:500], "The form ends before its last boundary."),
    (b"", "The form ends before its last boundary."),
    (b"{}\n", "The form cannot be read. Send multipart/form-data with the boundary that Content-Type names."),
    (b"--abc\r\n", "The form cannot be read."),
    (b"--xyz\r\nContent-Disposition: attachment\r\n\r\nx\r\n" + END, "A part of the form has no name"),
    (b"--xyz\r\n\r\nx\r\n" + END, "A part of the form has no name"),
    (b"--xyz\r\n" + b"A: b\r\n" * 50 + b"\r\nx\r\n" + END, "The form cannot be read."),
    (b"--xyz\r\nA: " + b"b" * 17_000 + b"\r\n\r\nx\r\n" + END, "A header of the form has more than 16,384 bytes."),
    (
        part("file", b"e30=", "Content-Transfer-Encoding: base64") + END,
        "Parts with a Content-Transfer-Encoding are not",
    ),
]


async def test_a_field_that_is_not_told_of_may_come() -> None:
    for name in ("csrf", "nope"):
        sent = body.Form(pieces(part(name, b"x") + FILE + END), parts.boundary(TYPE), KNOWN, ("csrf",))
        if name == "csrf":
            assert await sent.fields() == {"csrf": "x"}
            continue
        with pytest.raises(InvalidRequestError, match="Its fields: scorer, template, file"):
            await sent.fields()


@pytest.mark.parametrize(("data", "words"), REFUSED)
async def test_what_is_no_such_form_is_refused_with_what_to_do(data: bytes, words: str) -> None:
    for cuts in ((), range(0, len(data), 3)):
        with pytest.raises(InvalidRequestError) as refused:
            await read(data, cuts)
        assert refused.value.message.startswith(words)


def test_a_type_without_a_boundary_is_refused() -> None:
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary=""'):
        with pytest.raises(InvalidRequestError, match="names no boundary"):
            parts.boundary(kind)
    with pytest.raises(InvalidRequestError, match="too long"):
        body.Form(pieces(b""), b"x" * 300, KNOWN)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("batch_5k.jsonl", "batch_5k.jsonl"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\rows.csv", "rows.csv"),
        ("a\x00b\r\nSet-Cookie: x", "abSet-Cookie: x"),
        ("\u202egnp.exe", "gnp.exe"),
        ("<script>alert(1)</script>", "script>"),
        ("候选人 – Müller.jsonl", "候选人 – Müller.jsonl"),
        ("x" * 300 + ".jsonl", "x" * 194 + ".jsonl"),
        ("." + "x" * 300, "." + "x" * 199),
        ("", "otherwise"),
        ("..", "otherwise"),
        ("a/", "otherwise"),
        ("\x1b\x07", "otherwise"),
    ],
)
def test_a_files_name_is_shown_without_folders_and_what_cannot_be_seen(sent: str, kept: str) -> None:
    assert body.clean_name(sent, "otherwise") == kept
