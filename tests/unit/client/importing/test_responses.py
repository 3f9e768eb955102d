"""Files of answers: which line answers which item, what it says, and what is said of a bad one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.importing.response_files import read, written
from touchstone.v1 import suite_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer
from touchstone_client.errors import InvalidError
from touchstone_client.importing import reading, responses
from touchstone_client.importing.log import Log, Target
from touchstone_client.importing.names import resolve

KNOWN = [
    suite_pb2.Suite(suite="gsm8k", tasks=[suite_pb2.TaskInfo(task="gsm8k")]),
    suite_pb2.Suite(suite="glue", tasks=[suite_pb2.TaskInfo(task=task) for task in ("rte", "sst2")]),
]


def answers(log: Log) -> list[ImportedAnswer]:
    return [sample.answer for sample in log.samples()]


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.jsonl.gz"])
def test_a_published_file_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    log = read(
        tmp_path,
        {"output": ["It is 18.", "17"], "generator": "m", "id": "gsm8k-main-test-#0", "answer": "# 18"},
        "",
        {"output": ["3"], "generator": "m", "id": "gsm8k-main-test-#1", "answer": "# 3"},
        name=name,
    )
    assert (log.tool, log.mode, log.task, log.models) == ("imported", "generate", "answers", ("m",))
    first, second = answers(log)
    assert (first.item, first.response, second.item, second.response) == (0, "It is 18.", 1, "3")
    assert json.loads(first.row) == {"id": "gsm8k-main-test-#0", "reference": "# 18"}
    assert first.prompt == ""


@pytest.mark.parametrize("name", responses.RESPONSE)
def test_the_response_has_any_of_the_names(tmp_path: Path, name: str) -> None:
    assert [answer.response for answer in answers(read(tmp_path, {"id": 1, name: "x"}))] == ["x"]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ({"doc_id": 0}, {"id": "0"}),
        ({"custom_id": " a "}, {"id": "a"}),
        ({"problem": "Why?"}, {"question": "Why?"}),
        ({"prompt": "Why?", "id": 3}, {"id": "3", "prompt": "Why?"}),
        ({"messages": [{"role": "user", "content": "Why?"}]}, {"prompt": "user:\nWhy?"}),
    ],
)
def test_an_item_is_told_by_an_id_or_a_text(tmp_path: Path, line: dict[str, Any], row: dict[str, str]) -> None:
    (answer,) = answers(read(tmp_path, {**line, "response": "x"}))
    assert json.loads(answer.row) == row


def test_lines_of_openais_batch_output_are_read(tmp_path: Path) -> None:
    choice = {"message": {"role": "assistant", "content": "B"}, "finish_reason": "length"}
    (answer,) = answers(read(tmp_path, {"custom_id": "r", "response": {"body": {"choices": [choice]}}}))
    assert (answer.response, answer.finish_reason) == ("B", "length")


def test_a_response_of_null_is_an_error_of_its_item_and_an_empty_one_is_an_answer(tmp_path: Path) -> None:
    none, empty = answers(read(tmp_path, {"id": 0, "response": None}, {"id": 1, "response": ""}))
    assert (none.error, empty.error) == ("The line has no answer: its response is null.", "")


def test_a_half_character_is_replaced(tmp_path: Path) -> None:
    (answer,) = answers(read(tmp_path, '{"id": "\\ud800", "response": "a\\ud800"}'))
    assert answer.response == "a?"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{broken"], "line 1: it is not JSON"),
        (["", "[1]"], "line 2: it is not a JSON object"),
        (["[" * 100_000], "line 1: it is not JSON"),
        (
            [{"id": 1, "response": "x"}, {"id": 2, "text": "x"}],
            r"line 2: it has no response\. Add one of: response,",
        ),
        ([{"response": "x"}], r"line 1: it does not say which item it answers\. Add one of: id, custom_id,"),
        ([{"id": True, "response": "x"}], "line 1: it does not say which item"),
        ([{"id": 1, "response": 3}], "line 1: its response must be a string"),
        ([{"id": 1, "output": []}], "line 1: its output is an empty list"),
        ([{"id": 1, "response": {"body": {}}}], r"line 1: its response is an object without body\.choices"),
        ([], "it has no lines"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        read(tmp_path, *lines)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_bytes(b'{"id": 1, "response": "\xff"}\n')
    with pytest.raises(InvalidError, match="line 1: it is not JSON"):
        reading.read([tmp_path / "answers.jsonl"])


@pytest.mark.parametrize("end", [-4, 12])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, end: int) -> None:
    file = written(tmp_path, {"id": 1, "response": "x" * 1000}, name="answers.jsonl.gz")
    file.write_bytes(file.read_bytes()[:end])
    with pytest.raises(InvalidError, match=r"answers\.jsonl\.gz: it cannot be unpacked"):
        reading.read([file])


def test_a_line_that_unpacks_to_gigabytes_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "_LINE_BYTES", 1000)
    monkeypatch.setattr(responses, "_FILE_BYTES", 2000)
    with pytest.raises(InvalidError, match="line 1: it has more than"):
        read(tmp_path, {"id": 1, "response": "x" * 5000}, name="bomb.jsonl.gz")
    with pytest.raises(InvalidError, match="line 3: the file has more than"):
        read(tmp_path, *[{"id": 1, "response": "x" * 900}] * 3)


def test_the_task_is_the_suites_only_one_or_the_files_name_or_is_asked_for(tmp_path: Path) -> None:
    log = read(tmp_path, {"id": 1, "response": "x"})
    assert resolve([log], KNOWN, "gsm8k", {}) == ("gsm8k", {"answers": [Target("gsm8k", "gsm8k")]})
    assert resolve([log], KNOWN, "glue", {"answers": "rte"})[1] == {"answers": [Target("glue", "rte")]}
    named = read(tmp_path, {"id": 1, "response": "x"}, name="sst2.jsonl")
    assert resolve([named], KNOWN, "glue", {})[1] == {"sst2": [Target("glue", "sst2")]}
    with pytest.raises(InvalidError, match=r"Name the task of glue that answers\.jsonl answers: --task TASK"):
        resolve([log], KNOWN, "glue", {})
    with pytest.raises(InvalidError, match=r"--suite NAME, or --dataset ID"):
        resolve([log], KNOWN, "", {})
