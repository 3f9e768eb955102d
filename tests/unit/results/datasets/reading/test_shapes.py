"""Rows as other projects write them: what becomes prompt and reference, and which rows do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.patterns import compiled
from tests.unit.results.datasets.reading.kinds import KINDS
from tests.unit.results.uploads import Outcome, jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset, DatasetRow
from touchstone.v1.job_pb2 import LAST_ASSISTANT_PREFILL, LAST_ASSISTANT_REFERENCE
from touchstone.v1.scoring_pb2 import Scoring

ALPACA = {"instruction": "Name the planet.", "input": "It has rings.", "output": "Saturn"}
SHAREGPT = {
    "id": "a",
    "system": "Be brief.",
    "conversations": [
        {"from": "human", "value": "2 + 2?"},
        {"from": "gpt", "value": "4"},
        {"from": "human", "value": "And 3 + 3?"},
        {"from": "gpt", "value": "6"},
    ],
}
EVALS = {
    "input": [{"role": "system", "content": "One word."}, {"role": "user", "content": "Capital of Peru?"}],
    "ideal": ["Lima", "Lima, Peru"],
}
COMPLETION = {"prompt": "The sky is", "completion": " blue."}
QUESTION = {"question": "Who sings?", "answer": "A bird", "level": "easy"}
SQUAD = {
    "id": "56be",
    "title": "Birds",
    "context": "A bird sings.",
    "question": "Who sings?",
    "answers": {"text": ["A bird", "bird", "A bird"], "answer_start": [0, 2, 0]},
}
DPO = {"prompt": "Why?", "chosen": "Because of rain.", "rejected": "No."}
DPO_TURNS = {
    "chosen": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Rain."}],
    "rejected": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "No."}],
}
INSPECT = {"id": 7, "input": "Pick a gas.", "choices": ["iron", "neon"], "target": "B", "metadata": {"level": 1}}
PARIS = {"type": "contains", "value": "Paris"}
TEST = {
    "description": "d",
    "vars": {"question": "Capital of France?"},
    "assert": [{"type": "contains", "value": "Paris"}],
}


def said(row: DatasetRow) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in row.messages]


_LISTED = [("user", "Which?\n\nA) iron\nB) neon")]
_FOUR = [("user", "Which?\n\nA) iron\nB) neon\nC) tin\nD) lead")]
_GAS = [("user", "Which gas glows red?")]


@pytest.mark.parametrize(
    ("name", "kind", "messages", "reference"),
    [
        ("llama_factory_preference", "DPO", [("user", "Name it.\n\nRings.")], "Saturn"),
        ("llama_factory_kto", "ALPACA", [("user", "Name it.")], None),
        ("dolly", "ALPACA", [("user", "Who?\n\nAnn sang.")], "Ann"),
        ("sharegpt", "SHAREGPT", [("user", "2 + 2?")], "4"),
        ("sharegpt_preference", "DPO", [("user", "2 + 2?")], "4"),
        ("fine_tuning", "PROMPT_COMPLETION", [("user", "The sky is")], " blue."),
        ("fine_tuning_chat", "LINES", _GAS, None),
        ("openai_preference", "DPO", _GAS, "Neon."),
        ("trl_prompt_completion", "PROMPT_COMPLETION", _GAS, "Neon."),
        ("trl_unpaired", "PROMPT_COMPLETION", [("user", "The sky is")], None),
        ("trl_preference", "DPO", _GAS, "Neon."),
        ("trl_implicit", "DPO", _GAS, "Neon."),
        ("anthropic_hh", "DPO", [("user", "Red gas?"), ("assistant", "A guess?"), ("user", "Yes.")], "Neon: it glows."),
        ("orca_preference", "DPO", [("system", "Be brief."), ("user", "Red gas?")], "Neon"),
        ("ultrafeedback", "DPO", [("user", "Red gas?")], "Neon."),
        ("boolq", "QUESTION_ANSWER", [("user", "Ann sang.\n\ndid ann sing")], True),
        ("triviaqa", "QUESTION_ANSWER", [("user", "Who?")], ["Ann", "Anne"]),
        ("mmlu", "QUESTION_ANSWER", _FOUR, "B"),
        ("arc", "QUESTION_ANSWER", _LISTED, "B"),
        ("medqa", "QUESTION_ANSWER", _LISTED, "B"),
        ("lettered", "QUESTION_ANSWER", [("user", "Which gas glows red?\n\nA) iron\nB) neon\nC) tin")], "B"),
        ("option_columns", "QUESTION_ANSWER", [("user", "Which gas glows red?\n\nA) iron\nB) neon")], "B"),
    ],
)
def test_a_kind_is_the_same_in_lines_and_in_an_array(name: str, kind: str, messages: Any, reference: Any) -> None:
    for made in (array(KINDS[name]), upload(jsonl(KINDS[name]))):
        (found,) = made.rows
        assert made.dataset is not None
        assert made.dataset.format == Dataset.Format.Value(f"FORMAT_{kind}")
        assert said(found) == messages
        assert (json.loads(found.reference) if found.reference else None) == reference


@pytest.mark.parametrize(
    ("choices", "answer", "letter"),
    [
        # A number is a place among texts, and a text among numbers.
        (["1", "0", "2"], 0, "A"),
        ([1, 0, 2], 0, "B"),
        (["1", "0", "2"], "0", "B"),
        (["iron", "neon"], "b", "B"),
        (["iron", "neon"], "neon", "B"),
        ({"1": "iron", "2": "neon"}, 2, "B"),
        (["iron", "neon"], None, None),
        (["true", "false"], False, "B"),
    ],
)
def test_the_right_choice_is_a_letter(choices: Any, answer: Any, letter: str | None) -> None:
    (row,) = array({"question": "Which?", "choices": choices, "answer": answer}).rows

    assert row.reference == (json.dumps(letter) if letter else "")


def test_an_answer_that_is_called_wrong_is_metadata() -> None:
    made = array(KINDS["trl_unpaired"], KINDS["trl_unpaired"] | {"label": True})

    assert [row.reference for row in made.rows] == ["", '" green."']
    assert json.loads(made.rows[0].metadata) == {"completion": " green.", "label": False}
    assert made.dataset is not None
    assert made.dataset.reading.endswith("reference from completion unless label is false")


@pytest.mark.parametrize(
    "more", [{"reference": "c"}, {"max_tokens": 5}, {"chosen": "c", "rejected": "d"}, {"extra": {"top_k": 1}}]
)
def test_lines_with_what_only_plain_lines_have_stay_plain_lines(more: dict[str, Any]) -> None:
    made = upload(jsonl(COMPLETION | more))

    assert made.dataset is not None
    assert made.dataset.format == Dataset.FORMAT_LINES
    assert json.loads(made.rows[0].metadata)["completion"] == " blue."


def array(*rows: Any, **options: Any) -> Outcome:
    return upload(json.dumps(rows).encode(), **options)


@pytest.mark.parametrize(
    ("row", "kind", "messages", "reference", "metadata"),
    [
        (ALPACA, "ALPACA", [("user", "Name the planet.\n\nIt has rings.")], "Saturn", None),
        (
            {**ALPACA, "system": "s", "history": [["a", "b"]], "input": "", "n": 1},
            "ALPACA",
            [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "Name the planet.")],
            "Saturn",
            {"n": 1},
        ),
        (
            SHAREGPT,
            "SHAREGPT",
            [("system", "Be brief."), ("user", "2 + 2?"), ("assistant", "4"), ("user", "And 3 + 3?")],
            "6",
            {"id": "a"},
        ),
        (EVALS, "OPENAI_EVALS", [("system", "One word."), ("user", "Capital of Peru?")], ["Lima", "Lima, Peru"], None),
        ({"input": "Why?", "ideal": "So"}, "OPENAI_EVALS", [("user", "Why?")], "So", None),
        (COMPLETION, "PROMPT_COMPLETION", [("user", "The sky is")], " blue.", None),
        (
            {"prompt": DPO_TURNS["chosen"][:1], "completion": DPO_TURNS["chosen"][1:]},
            "PROMPT_COMPLETION",
            [("user", "Why?")],
            "Rain.",
            None,
        ),
        (QUESTION, "QUESTION_ANSWER", [("user", "Who sings?")], "A bird", {"level": "easy"}),
        ({"Question": "a", " ANSWER": 4}, "QUESTION_ANSWER", [("user", "a")], 4, None),
        (
            SQUAD,
            "QUESTION_ANSWER",
            [("user", "A bird sings.\n\nWho sings?")],
            ["A bird", "bird"],
            {"id": "56be", "title": "Birds"},
        ),
        ({**SQUAD, "answers": {"text": [], "answer_start": []}}, "QUESTION_ANSWER", None, None, None),
        ({"question": "a", "answers": [{"text": "b"}, {"text": "c"}]}, "QUESTION_ANSWER", None, ["b", "c"], None),
        (DPO, "DPO", [("user", "Why?")], "Because of rain.", {"rejected": "No."}),
        (DPO_TURNS, "DPO", [("user", "Why?")], "Rain.", None),
        (INSPECT, "INSPECT", [("user", "Pick a gas.\n\nA) iron\nB) neon")], "B", {"level": 1}),
        ({"input": EVALS["input"], "target": ["a", "b"]}, "INSPECT", None, ["a", "b"], None),
        (
            TEST,
            "PROMPTFOO",
            [("user", "Capital of France?")],
            "Paris",
            {"question": "Capital of France?", "description": "d"},
        ),
    ],
)
def test_a_kind_is_told_by_its_names(row: Any, kind: str, messages: Any, reference: Any, metadata: Any) -> None:
    made = array(row)
    (found,) = made.rows

    assert made.dataset is not None
    assert made.dataset.format == Dataset.Format.Value(f"FORMAT_{kind}")
    assert messages is None or said(found) == messages
    assert (json.loads(found.reference) if found.reference else None) == reference
    if metadata is not None:
        assert json.loads(found.metadata) == metadata


@pytest.mark.parametrize(
    ("row", "reading"),
    [
        (ALPACA, "read as Alpaca: prompt from instruction and input, reference from output"),
        ({"instruction": "a", "output": "b"}, "prompt from instruction, reference from output"),
        (SHAREGPT, "read as ShareGPT: prompt from conversations, reference from the last message of gpt"),
        (EVALS, "read as OpenAI evals: prompt from input, reference from ideal"),
        (COMPLETION, "read as prompt and completion: prompt from prompt, reference from completion"),
        (SQUAD, "read as question and answer: prompt from context and question, reference from answers"),
        (DPO, "prompt from prompt, reference from chosen; rejected is metadata"),
        (INSPECT, "prompt from input and choices, reference from target, which the scorer choice compares"),
        (TEST, "prompt from question, reference from assert (contains), which the scorer contains compares"),
        ({"prompt": "a", "reference": "b"}, "read as plain lines: prompt from prompt, reference from reference"),
    ],
)
def test_a_dataset_says_how_its_rows_were_read(row: Any, reading: str) -> None:
    made = array(row)

    assert made.dataset is not None
    assert made.dataset.reading.startswith("JSON array, read as ")
    assert made.dataset.reading.endswith(reading)


@pytest.mark.parametrize(
    ("first", "row", "reason"),
    [
        (ALPACA, {"input": "a", "output": "b"}, '"instruction" is empty or absent'),
        (ALPACA, {"instruction": "a"}, 'no "output"'),
        (ALPACA, {**ALPACA, "history": ["a"]}, "list of pairs"),
        (ALPACA, {**ALPACA, "instruction": ["a"]}, "must be a text"),
        (SHAREGPT, {"conversations": []}, "not empty"),
        (SHAREGPT, {"conversations": ["a"]}, '"from" and "value"'),
        (SHAREGPT, {"conversations": [{"from": "observation", "value": "a"}]}, 'Message 1 is from "observation"'),
        (SHAREGPT, {**SHAREGPT, "tools": "[{}]"}, "tools"),
        (SHAREGPT, {"conversations": [{"from": "gpt", "value": "a"}]}, "no question is left"),
        (EVALS, {"input": "a"}, 'no "ideal"'),
        (COMPLETION, {"prompt": "a", "completion": DPO_TURNS["chosen"][:1]}, "must be the assistant's"),
        (QUESTION, {"question": "a"}, 'neither "answer" nor "answers"'),
        (QUESTION, {"question": "a", "choices": ["b", "c"], "answer": 2}, 'The answer "2" is none of the choices'),
        (QUESTION, {"question": "a", "choices": ["1", "0"], "answer": 2}, "is none of the choices"),
        (QUESTION, {"question": "a", "choices": ["B", "A"], "answer": "A"}, "may be several of the choices"),
        (
            QUESTION,
            {"question": "a", "choices": {"text": ["b"], "label": []}, "answer": "A"},
            "as many texts as labels",
        ),
        (QUESTION, {"question": "a", "A": "b", "B": "c", "answer": 1}, 'The answer "1" is none of the choices'),
        (DPO, {"chosen": "a", "rejected": "b"}, 'no "prompt"'),
        (DPO, {"chosen": "Human: a", "rejected": "b"}, 'no "prompt"'),
        (KINDS["openai_preference"], KINDS["openai_preference"] | {"input": "a"}, 'a list of "messages"'),
        (INSPECT, {**INSPECT, "sandbox": "docker"}, "no sandbox"),
        (INSPECT, {**INSPECT, "target": ["A", "B"]}, "Keep one target"),
        (INSPECT, {**INSPECT, "choices": ["a"] * 27}, "At most 26"),
        (TEST, {"vars": {"question": ["a", "b"]}}, "several tests"),
        (TEST, {"vars": {"question": "{{other}}"}}, "taken from elsewhere"),
        (TEST, {"vars": {"question": "file://a.txt"}}, "taken from elsewhere"),
        (TEST, {**TEST, "assert": [PARIS, PARIS]}, "2 asserts of texts"),
        (TEST, {**TEST, "assert": [{"type": "equals", "value": "file://a"}]}, "Write it out"),
        (TEST, {**TEST, "options": {"prefix": "a"}}, "a prefix or a suffix"),
        (TEST, {"vars": {"other": "a"}}, 'no "question"'),
    ],
)
def test_a_row_that_does_not_fit_is_named(first: Any, row: Any, reason: str) -> None:
    assert reason in array(first, row).reasons[2]


@pytest.mark.parametrize(
    ("rows", "reason", "field"),
    [
        ([ALPACA | QUESTION], "can be read as alpaca or question_answer. Set format", "format"),
        ([{"a": 1, "b": 2}], 'No known kind of rows has the columns "a", "b"', "template"),
        ([{"endings": ["a", "b"], "label": 0}], "Columns need a template", "template"),
        ([KINDS["dolly"] | QUESTION], "can be read as alpaca or question_answer", "format"),
        ([{"vars": {"a": 1, "b": 2}}], 'the variables "a", "b"', "template"),
    ],
)
def test_rows_are_not_guessed(rows: Any, reason: str, field: str) -> None:
    refusal = array(*rows).refusal

    assert refusal is not None
    assert reason in refusal.reason
    assert refusal.field == field


def test_the_uploader_says_another_reading() -> None:
    both = ALPACA | QUESTION
    (row,) = array(both, format=Dataset.FORMAT_QUESTION_ANSWER).rows
    assert row.reference == '"A bird"'

    line = jsonl(COMPLETION)
    (row,) = upload(line, format=Dataset.FORMAT_PROMPT_COMPLETION).rows
    assert row.reference == '" blue."'

    (row,) = array(ALPACA, template="{{output}}").rows
    assert said(row) == [("user", "Saturn")]


def test_another_field_may_be_the_reference() -> None:
    made = array(QUESTION, scoring=Scoring(reference_field="level"))

    assert made.rows[0].reference == '"easy"'
    assert json.loads(made.rows[0].metadata) == {"answer": "A bird", "level": "easy"}
    assert made.dataset is not None
    assert made.dataset.reading.endswith("prompt from question, reference from level")


def test_another_field_may_be_the_id() -> None:
    assert array(SQUAD, custom_id_field="id").rows[0].custom_id == "56be"
    assert array(INSPECT).rows[0].custom_id == "7"
    assert array({**INSPECT, "own": "x"}, custom_id_field="own").rows[0].custom_id == "x"


def test_sharegpts_last_message_may_begin_the_answer() -> None:
    made = array(SHAREGPT, last_assistant=LAST_ASSISTANT_PREFILL)
    assert said(made.rows[0])[-1] == ("assistant", "6")

    made = array(SHAREGPT)
    assert made.dataset is not None
    assert made.dataset.last_assistant == LAST_ASSISTANT_REFERENCE


def test_a_kind_takes_no_template() -> None:
    assert "do not use a template" in array(ALPACA, format=Dataset.FORMAT_ALPACA, template="{{a}}").refused


def test_tables_hold_lists_as_json() -> None:
    conversations = json.dumps(SHAREGPT["conversations"]).replace('"', '""')
    made = upload(f'conversations\n"{conversations}"\n'.encode(), name="a.csv")
    assert made.rows[0].reference == '"6"'

    made = upload(b'input,target,choices\na,B,"iron, neon"\n')
    assert said(made.rows[0]) == [("user", "a\n\nA) iron\nB) neon")]

    made = upload(b'question,answer\na,"[1, 2]"\n')
    assert json.loads(made.rows[0].reference) == "[1, 2]"


# -- promptfoo ------------------------------------------------------------------------------------------------------

CONFIG = """
description: Capitals
prompts:
  - 'Answer in {{language}}: {{question}}'
providers: [openai:gpt-5-mini]
tests:
  - vars: {language: French, question: 'Capital of France?'}
    assert:
      - {type: equals, value: Paris}
      - {type: latency, threshold: 500}
  - vars: {language: English, question: 'A gas?'}
    assert: [{type: icontains-any, value: [neon, argon]}]
"""


def test_the_prompt_of_a_configuration_is_the_template() -> None:
    made = upload(CONFIG.encode(), scoring=Scoring(scorer="regex"))

    assert [said(row)[0][1] for row in made.rows] == [
        "Answer in French: Capital of France?",
        "Answer in English: A gas?",
    ]
    assert [json.loads(row.reference) for row in made.rows] == [r"\A\s*Paris\s*\z", ["(?i)neon", "(?i)argon"]]
    assert json.loads(made.rows[0].metadata)["assert"] == [{"type": "latency", "threshold": 500}]
    assert made.dataset is not None
    assert made.dataset.reading.startswith(
        "YAML, read as promptfoo tests: prompt from language, question in the configuration's "
        '"Answer in {{language}}: {{question}}", reference from assert (equals)'
    )
    other = upload(CONFIG.encode(), scoring=Scoring(scorer="regex"), template="{{question}}").dataset
    assert other is not None
    assert "configuration" not in other.reading


@pytest.mark.parametrize(
    ("first", "second"),
    [("equals", "contains"), ("icontains", "regex"), ("contains-any", "equals")],
)
def test_asserts_that_one_scorer_cannot_compare_are_refused(first: str, second: str) -> None:
    def tests(*kinds: str) -> bytes:
        made = [{"vars": {"q": f"{n}"}, "assert": [{"type": kind, "value": "a"}]} for n, kind in enumerate(kinds)]
        return json.dumps(made).encode()

    for scorer in ("", "exact_match", "contains"):
        made = upload(tests(first, first, second, first), scoring=Scoring(scorer=scorer))
        assert made.refused.startswith(f"The tests have asserts of the types {first} and {second}")
        assert "Choose the scorer regex" in made.refused
        assert made.refusal is not None
        assert made.refusal.field == "scoring.scorer"
        assert upload(tests(first, first), scoring=Scoring(scorer=scorer)).rows
    assert len(upload(tests(first, second), scoring=Scoring(scorer="regex")).rows) == 2
    assert upload(tests("contains", "icontains-any")).rows
    assert upload(tests(first, second), scoring=Scoring(reference_field="q")).rows, "their asserts are not used"


@pytest.mark.parametrize(
    ("kind", "value", "right", "wrong"),
    [
        ("equals", "a.b (c)", ["a.b (c)", " a.b (c)\n"], ["aXb (c)", "It is a.b (c)", "A.b (c)", "a.b (c)\nor"]),
        ("equals", 42, ["42"], ["142", "42.0"]),
        ("contains", "C++\n#1", ["In C++\n#1."], ["In C\n#1", "c++\n#1"]),
        ("icontains", "straße?", ["Die STRAßE?"], ["straß"]),
        ("icontains-any", ["neon", "argon"], ["It is NEON"], ["xenon"]),
        ("regex", "^P.*s$", ["Paris"], ["In Paris"]),
    ],
)
def test_with_the_scorer_regex_each_test_is_compared_as_its_assert_says(
    kind: str, value: Any, right: list[str], wrong: list[str]
) -> None:
    made = array({"vars": {"q": "1"}, "assert": [{"type": kind, "value": value}]}, scoring=Scoring(scorer="regex"))
    found = json.loads(made.rows[0].reference)
    patterns = found if isinstance(found, list) else [found]
    for text in (*right, *wrong):
        assert any(compiled(pattern).search(text) for pattern in patterns) == (text in right), text


def test_a_template_makes_the_prompt_of_tests() -> None:
    tests = [{"vars": {"a": "1", "b": "2"}}, {"vars": {"a": "3", "b": "4"}}]

    assert [said(row)[0][1] for row in array(*tests, template="{{a}} + {{b}}").rows] == ["1 + 2", "3 + 4"]


def test_lines_with_variables_stay_columns_of_a_template() -> None:
    (row,) = upload(jsonl(TEST), template="{{vars.question}}").rows
    assert said(row) == [("user", "Capital of France?")]
    assert not row.reference

    (row,) = upload(jsonl(TEST), template="{{question}}!", format=Dataset.FORMAT_PROMPTFOO).rows
    assert said(row) == [("user", "Capital of France?!")]
    assert row.reference == '"Paris"'


@pytest.mark.parametrize(
    ("expected", "reference"),
    [
        ("Paris", "Paris"),
        ("equals: Paris", "Paris"),
        ("contains:Paris", "Paris"),
        ("icontains-any: a, b", ["a", "b"]),
        ("regex: ^P", "^P"),
        ("Note: all of it", "Note: all of it"),
        ("llm-rubric: is nice", None),
        ("not-contains: Rome", None),
        ("similar(0.8): Paris", None),
        ("", None),
    ],
)
def test_expected_cells_begin_with_a_type_or_are_equal(expected: str, reference: Any) -> None:
    data = f'question,__expected,__description\nCapital?,"{expected}",d\nb,,\n'.encode()
    found = upload(data).rows[0]

    assert said(found) == [("user", "Capital?")]
    assert (json.loads(found.reference) if found.reference else None) == reference


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("tests:\n- vars: {a: 1}\ndefaultTest: {vars: {b: 1}}\n", "has defaultTest"),
        ("prompts: ['{% if a %}']\ntests:\n- vars: {a: 1}\n", "Nunjucks"),
        ("prompts: [file://a.txt]\ntests:\n- vars: {a: 1, b: 2}\n", "Set a template"),
        ("prompts: [a]\ntests: file://tests.csv\n", "in another file"),
    ],
)
def test_a_configuration_that_is_not_whole_is_refused(config: str, reason: str) -> None:
    assert reason in upload(config.encode()).refused


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"doc_id": 0, "doc": {}, "target": "a", "arguments": {}, "resps": [["x"]]}, "samples of lm-eval"),
        ({"ind": 4, "ctx": "A man is", "endings": ["a", "b"], "label": "1"}, "Run the suite hellaswag, or rename ctx"),
        ({"message_id": "a", "parent_id": None, "text": "Hi?", "role": "prompter"}, "messages of OpenAssistant"),
        ({"message_tree_id": "a", "prompt": {"text": "Hi?", "replies": []}}, "message trees of OpenAssistant"),
    ],
)
def test_known_files_that_are_not_rows_are_named(line: dict[str, Any], what: str) -> None:
    assert what in upload(jsonl(line)).refused
    # With a prompt of their own they are lines as any other.
    assert upload(jsonl(line | {"prompt": "Why?"})).dataset is not None


def test_a_table_without_a_header_that_mmlu_wrote_is_told_which_header_to_add() -> None:
    table = b'"What is 2 + 3?",4,5,6,7,B\n"And 3 + 4?",5,6,7,8,C\n'
    assert "question,A,B,C,D,answer" in upload(table, name="algebra_test.csv").refused
    made = upload(b"question,A,B,C,D,answer\n" + table, name="algebra_test.csv")
    assert [row.reference for row in made.rows] == ['"B"', '"C"']
