"""Files that are broken, foreign or meant to harm: refused with a sentence, or read; never a crash."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.results.datasets.frames import Limits
from tests.parts import NIGHTLY
from tests.unit.results.uploads import Outcome, batch_line, contents, jsonl, packed, upload
from touchstone.v1.dataset_pb2 import Dataset
from touchstone.v1.scoring_pb2 import Scoring


@pytest.mark.parametrize("line", [b"0\n", b"{}\n", b'{"prompt": "a"}\n'])
def test_a_small_file_may_take_little_work(line: bytes) -> None:
    limits = Limits(small_cpu_s=0)
    data = packed(line * (15_000_000 // len(line)))
    made = upload(data, limits=limits)

    assert "too much CPU time for its size" in made.refused
    assert f"for {len(data):,} bytes" in made.refused
    assert Limits().work_s(61_000) < 6
    assert Limits().work_s(10**9) == Limits().cpu_s


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf", packed(b""), b"\xff\xfe"])
def test_an_empty_file_holds_no_rows(data: bytes) -> None:
    assert "no rows" in upload(data).refused


def test_more_rows_or_lines_than_the_limit_are_refused() -> None:
    limits = Limits(rows=3)

    assert "more than 3 rows" in upload(b'{"prompt": "a"}\n' * 4, limits=limits).refused
    assert "more than 15 lines" in upload(b"\n" * 16, limits=limits).refused


def test_a_broken_first_line_does_not_make_the_others_wrong() -> None:
    made = upload(b"# rows of May\n" + jsonl(*(batch_line(str(n)) for n in range(5))))

    assert list(made.reasons) == [1]
    assert upload(b"#\n" * 300).bad is not None


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a\0.csv", "x" * 5000, "🙂.jsonl", ".csv", "..", "/"])
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    assert upload(b'{"prompt": "a"}\n', name=name).dataset or name.endswith(".csv")


_KEYS = st.sampled_from(
    (
        *("custom_id", "method", "url", "body", "messages", "prompt", "reference", "metadata", "role", "content"),
        *("extra", "temperature", "max_tokens", "seed", "stop", "n", "stream", "tools", "model", "q", "type", "text"),
        "response_format",
        *("instruction", "input", "output", "history", "system", "conversations", "from", "value", "ideal", "id"),
        *("question", "answer", "answers", "context", "chosen", "rejected", "target", "choices", "vars", "assert"),
        *("completion", "__expected", "options"),
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
_PLAIN = st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])


def _tells_why(made: Outcome) -> None:
    """Raises AssertionError unless what is no dataset has a reason that can be shown."""
    if made.bad is not None:
        assert 0 < len(made.bad.lines) <= made.bad.total
        assert all(0 < len(line.reason) <= 300 and line.reason.isprintable() for line in made.bad.lines)
    if made.refusal is not None:
        assert made.refused.isprintable()
        assert made.refused.endswith(".")
    assert (made.dataset, made.bad, made.refusal).count(None) == 2


@settings(max_examples=150 if NIGHTLY else 30)
@given(
    data=st.binary(max_size=400),
    head=st.sampled_from([b"", b"\xff\xfe", b"\xef\xbb\xbf", b"q,r\n", b"q,r\nx,y\n", b'{"prompt": "a", "q": "b"}\n']),
    name=_NAMES,
    template=_TEMPLATES,
)
def test_any_bytes_become_a_dataset_or_reasons(data: bytes, head: bytes, name: str, template: str) -> None:
    plain = upload(head + data, name=name, template=template)
    zipped = upload(packed(head + data), name=name, template=template)
    broken = upload(b"\x1f\x8b\x08" + data, name=name, template=template)

    _tells_why(plain)
    assert (zipped.shards, zipped.bad, zipped.refusal) == (plain.shards, plain.bad, plain.refusal)
    assert broken.refusal, "no such bytes are a whole gzip file"
    _tells_why(broken)


@settings(max_examples=300 if NIGHTLY else 50)
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

    _tells_why(made)
    if made.bad is not None:
        assert made.bad.total <= len(rows)
    if made.dataset is not None:
        assert all(json.loads(row.reference) is not None for row in made.rows if row.reference)
        assert all(isinstance(json.loads(row.metadata), dict) for row in made.rows if row.metadata)


@settings(max_examples=100 if NIGHTLY else 40)
@given(
    st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=3), max_size=6), st.sampled_from(["\n", "\r\n", "\r"])
)
def test_any_cells_become_a_dataset_or_reasons(rows: list[list[str]], end: str) -> None:
    text = "q,r" + end + end.join(",".join(row) for row in rows)
    made = upload(text.encode(), name="a.csv", template="{{q}}")

    _tells_why(made)
    if made.dataset is not None:
        _, *records = csv.reader(line + "\n" for line in text.split("\n"))
        assert [row.messages[0].content for row in made.rows] == [r[0] for r in records if any(map(str.strip, r))]


@settings(max_examples=100 if NIGHTLY else 40)
@given(
    st.lists(st.tuples(st.text(_PLAIN, min_size=1, max_size=8), st.text(_PLAIN, max_size=8)), min_size=1, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_quoted_cells_are_read_as_they_were_written(rows: list[tuple[str, str]], end: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerows([("q", "r"), *rows])

    assert contents(text.getvalue().encode(), name="a.csv", template="{{q}}") == [first for first, _ in rows]


def test_a_template_names_no_column_of_thousands_of_dots() -> None:
    name = "a." * 10_000 + "a"

    made = upload(b'{"a": {"b": 1}}\n', template=f"{{{{{name}}}}}")

    assert (
        made.refused
        == 'The template names "a.a.a.a.a.a.a.a.a.a.…", which has more than 200 characters. Use a shorter name.'
    )


def test_a_file_that_takes_too_much_work_is_refused() -> None:
    made = upload(jsonl(*({"prompt": str(number)} for number in range(100))), limits=Limits(cpu_s=0))

    assert made.refused.startswith("Reading the file takes more than 0 s of CPU time.")
