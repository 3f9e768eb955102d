"""Files that are broken, foreign or meant to harm: refused with a sentence, or read; never a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.results.datasets.frames import Limits
from tests.unit.results.uploads import batch_line, jsonl, packed, upload
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


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=3), max_size=6), st.sampled_from(["\n", "\r\n", "\r"])
)
def test_any_cells_become_a_dataset_or_reasons(rows: list[list[str]], end: str) -> None:
    text = "q,r" + end + end.join(",".join(row) for row in rows)
    upload(text.encode("utf-8", "replace"), name="a.csv", template="{{q}}")


def test_a_template_names_no_column_of_thousands_of_dots() -> None:
    name = "a." * 10_000 + "a"

    made = upload(b'{"a": {"b": 1}}\n', template=f"{{{{{name}}}}}")

    assert (
        made.refused
        == 'The template names "a.a.a.a.a.a.a.a.a.a.…", which has more than 200 characters. Rename the column.'
    )


def test_a_file_that_takes_too_much_work_is_refused() -> None:
    made = upload(jsonl(*({"prompt": str(number)} for number in range(100))), limits=Limits(cpu_s=0))

    assert made.refused.startswith("Reading the file takes more than 0 s of CPU time.")
