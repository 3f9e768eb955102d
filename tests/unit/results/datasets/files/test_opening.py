"""A file is told by its content, whatever its name: what is read as what, and what is refused."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from services.results.datasets.files.lines import separator_of
from tests.unit.results.uploads import Outcome, upload

ROWS = [{"question": "Größe?", "answer": "12"}, {"question": "Why, and how?", "answer": "So."}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
ARRAY = json.dumps(ROWS).encode()
PRETTY = json.dumps(ROWS, indent=2).encode()
DOCUMENT = json.dumps({"version": 2, "data": ROWS}, indent=2).encode()
YAML = 'data:\n- question: Größe?\n  answer: "12"\n- question: Why, and how?\n  answer: So.\n'.encode()
COMMAS = 'question,answer\nGröße?,12\n"Why, and how?",So.\n'.encode()
SEMICOLONS = "question;answer\r\nGröße?;12\r\nWhy, and how?;So.\r\n".encode()
TABS = "question\tanswer\nGröße?\t12\nWhy, and how?\tSo.\n".encode()


def told(made: Outcome) -> str:
    assert made.dataset is not None, made.bad or made.refusal
    return made.dataset.reading.partition(",")[0]


@pytest.mark.parametrize("name", ["rows", "rows.jsonl", "rows.csv", "rows.xlsx"])
@pytest.mark.parametrize(
    ("data", "container"),
    [
        (LINES, "JSON Lines"),
        (ARRAY, "JSON array"),
        (PRETTY, "JSON array"),
        (DOCUMENT, "JSON object"),
        (COMMAS, "CSV"),
        (SEMICOLONS, "CSV with semicolons"),
        (TABS, "TSV"),
    ],
)
def test_a_file_is_told_by_its_content(data: bytes, container: str, name: str) -> None:
    for sent in (data, gzip.compress(data), data.decode().encode("utf-16")):
        made = upload(sent, name=name)

        assert told(made) == container
        assert [row.messages[0].content for row in made.rows] == ["Größe?", "Why, and how?"]
        assert [row.reference for row in made.rows] == ['"12"', '"So."']


def test_yaml_is_told_by_its_first_line() -> None:
    for data in (YAML, b"# tests of ours\n---\n" + YAML, YAML.partition(b"\n")[2]):
        made = upload(data)

        assert told(made) == "YAML"
        assert [row.messages[0].content for row in made.rows] == ["Größe?", "Why, and how?"]


@pytest.mark.parametrize("size", [1, 3, 7])
def test_it_does_not_matter_how_the_bytes_of_an_array_arrive(size: int) -> None:
    first = {"prompt": 'a "quoted" \\ word, and ] } [ {', "metadata": {"deep": [[1, {"a": ["\\"]}]]}}
    tricky: list[dict[str, Any]] = [first, {"prompt": "b"}]
    data = json.dumps(tricky).encode()

    made = upload([data[i : i + size] for i in range(0, len(data), size)])

    assert [row.messages[0].content for row in made.rows] == [row["prompt"] for row in tricky]


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ('[{"prompt": "a"}, 1, {"prompt": "b"}]', {2: "not a JSON object"}),
        ('[{"prompt": "a"},, {"prompt": "b"}]', {2: "not followed by a row"}),
        ('[{"prompt": "a"}, {"prompt": "b",}]', {2: "not JSON"}),
        ('[{"prompt": "a"}, {"prompt": "b"},]', {3: "not followed by a row"}),
        ('[{"prompt": "a"}, {"prompt": "b", "prompt": "c"}]', {2: "occurs twice"}),
        ('[{"prompt": "a"}, {"prompt": "b\0"}]', {2: "not JSON"}),
        ('[{"prompt": "' + "a" * 3_000_000 + '"}, {"prompt": "b"}]', {1: "more than 2,097,152 bytes"}),
        ('[{"prompt": "a"}, {"a": ' + "[" * 100 + "]" * 100 + "}]", {2: "nests more than 32"}),
    ],
)
def test_rows_of_an_array_that_do_not_fit_are_named_by_their_number(data: str, wrong: dict[int, str]) -> None:
    reasons = upload(data.encode()).reasons

    assert reasons.keys() == wrong.keys()
    assert all(part in reasons[number] for number, part in wrong.items())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'[{"prompt": "a"}, {"prom', "ends too early, after row 1"),
        (b'[{"prompt": "a"}', "ends too early, after row 0"),
        (b'[{"prompt": "a"}] []', "follows the JSON array after row 1"),
        (b"[]", "no rows"),
        (b'{\n"prompts": []\n}', "0 lists of rows"),
        (b'{\n"a": [{"prompt": "a"}],\n"b": [{"prompt": "b"}]\n}', "2 lists of rows"),
        (b'{\n"a": [{"prompt": "a"}\n', "not JSON"),
        (b'{\n"tests": "file://tests.yaml"\n}', "in another file"),
        (b"- a: &x [1]\n- a: *x\n", 'Line 2 has a YAML alias, "x"'),
        (b"- a: 1\n  a: 2\n", "occurs twice in one map, on lines 1 and 2"),
        (b"- a: " + b"[" * 50 + b"]" * 50, "nests more than 32"),
        (b"- a: [1\n", "not valid YAML on line 2"),
        (b"- a: .nan\n", "has no form in JSON"),
        (b"- a: !!python/object:os.system {}\n", "not valid YAML"),
        (b"- a: 1\n---\n- a: 2\n", "not valid YAML"),
        (b"- a: \xff\n", "is not UTF-8"),
        (b"- a: " + b"x" * 5_000_000, "more than 4,194,304 bytes"),
        (b"- a: \0\n", "NUL bytes"),
        (b"a\tb\ta\n1\t2\t3\n", 'names "a" twice'),
        (b"\xd0\xcf\x11\xe0" + bytes(100), "Save it as .xlsx without a password, or upload JSON"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(data: bytes, reason: str) -> None:
    assert reason in upload(data).refused


@pytest.mark.parametrize(
    ("head", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        # What is right with commas is read with commas, whatever else there is.
        ("a;x,b;y\n1;2,3;4\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a;b\n1,5;2\n", ";"),
        ('a;b\n"1;2";3\n\n', ";"),
        ('a;b\n1;"not at its e', ";"),
        ("a\nb\n", ""),
        ("a,b\n1\n", ""),
        ("", ""),
    ],
)
def test_the_separator_is_the_first_one_that_fits(head: str, separator: str) -> None:
    assert separator_of(head) == separator


def test_a_semicolon_is_named_where_cells_are_counted() -> None:
    rows = "".join(f"q{place};a\n" for place in range(30))
    made = upload(f"question;answer\n{rows}q;a;b\n".encode())

    assert made.reasons == {32: "The row has 3 cells and the header 2. Quote cells with semicolons."}


def test_a_table_with_prompts_needs_no_template() -> None:
    messages = json.dumps([{"role": "user", "content": "b"}]).replace('"', '""')
    made = upload(f'prompt,messages,reference,temperature,level\na,,A,0.5,3\n,"{messages}",,,\n'.encode(), name="a.csv")

    assert [row.messages[0].content for row in made.rows] == ["a", "b"]
    assert [row.reference for row in made.rows] == ['"A"', ""]
    assert made.rows[0].sampling.temperature == 0.5
    assert json.loads(made.rows[0].metadata) == {"level": "3"}


_SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Birds",
            "paragraphs": [
                {
                    "context": "Ann sang.",
                    "qas": [
                        {"id": "1", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]},
                        {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}


@pytest.mark.parametrize("indent", [None, 1])
def test_each_question_of_squad_is_a_row(indent: int | None) -> None:
    made = upload(json.dumps(_SQUAD, indent=indent).encode())

    assert [row.messages[0].content for row in made.rows] == ["Ann sang.\n\nWho?", "Ann sang.\n\nWhy?"]
    assert [row.reference for row in made.rows] == ['["Ann"]', ""]
    assert json.loads(made.rows[1].metadata) == {"title": "Birds", "id": "2", "is_impossible": True}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_configuration_in_json_may_be_one_line(indent: int | None) -> None:
    tests = [{"vars": {"q": "b"}, "assert": [{"type": "equals", "value": "c"}]}]
    made = upload(json.dumps({"prompts": ["Say {{q}}"], "tests": tests}, indent=indent).encode())

    assert [row.messages[0].content for row in made.rows] == ["Say b"]


def test_one_line_with_a_prompt_and_a_list_is_a_row() -> None:
    made = upload(b'{"prompt": "a", "data": [{"question": "b"}]}')
    assert [row.messages[0].content for row in made.rows] == ["a"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(("NO", '"NO"'), ("yes", '"yes"'), ("12:30", '"12:30"'), ("007", '"007"'), ("1_000", '"1_000"')),
        *(
            ("2024-01-31", '"2024-01-31"'),
            ("2024-01-31 08:00:00", '"2024-01-31 08:00:00"'),
            ("2024-99-99", '"2024-99-99"'),
        ),
        *(
            ("true", "true"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("-3", "-3"),
            ("1e3", "1000.0"),
            ("1.50", "1.5"),
            ("~", ""),
        ),
    ],
)
def test_scalars_of_yaml_are_those_of_version_1_2(written: str, read: str) -> None:
    """Version 1.1 makes false of an answer NO, and 750 of 12:30."""
    (row,) = upload(f"- question: a\n  answer: {written}\n".encode()).rows
    assert row.reference == read


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"- question: a\n  1: b\n  '1': c\n", 'The name "1" occurs twice in one map, on lines 2 and 3'),
        (b"---\nquestion: a\n---\nquestion: b\n", "not valid YAML on line 3"),
        (b"prompts: [a]\ntests:\n  - file://b.csv\n", 'The tests are in other files, "file://b.csv" first'),
        (b'[{"question": "a", "answer": 1e999}]', 'No row can be read. Row 1: The number "1e999" is too large'),
        (b'[["question", "answer"], ["a", "b"]]', "No row can be read. Row 1: The row is not a JSON object"),
    ],
)
def test_what_holds_no_row_is_refused_with_its_first_fault(data: bytes, reason: str) -> None:
    assert reason in upload(data).refused
