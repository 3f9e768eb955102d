"""Logs of Inspect: archives and documents, ids and attachments, and bad ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.importing.inspect_logs import SAMPLES, read, zstandard
from tests.unit.client.logs import archive, header, inspected
from touchstone_client.errors import InvalidError
from touchstone_client.importing import inspect


def document(file: Path, samples: Sequence[Any], head: dict[str, Any] | None = None) -> Path:
    file.write_text(json.dumps({**(head or header()), "samples": samples, "reductions": []}, indent=2))
    return file


@pytest.fixture(params=["archive", "document"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    def written(samples: Sequence[Any], head: dict[str, Any] | None = None) -> Path:
        if request.param == "archive":
            return archive(tmp_path / "log.eval", samples, head)
        return document(tmp_path / "log.json", samples, head)

    return written


def test_both_forms_give_the_same_answers(write: Callable[..., Path]) -> None:
    file = write(SAMPLES)
    log = inspect.read(file, 3, None)
    assert (log.tool, log.version, log.task, log.mode, log.shots) == ("inspect", "0.3.285", "sst2", "generate", 3)
    assert log.parameters == {"temperature": 0.0, "max_tokens": 16}
    found = [sample.answer for sample in log.samples()]
    assert [(a.item, a.repeat, a.prompt, a.response, a.finish_reason) for a in found] == [
        (0, 0, "user:\nSay yes.", "Answer: yes", "stop"),
        (1, 0, "user:\nSay no.", "Answer: no", "stop"),
    ]
    assert (found[0].input_tokens, found[0].output_tokens, found[0].latency_ms) == (9, 3, 250.0)


@pytest.mark.parametrize("count", [float("nan"), float("inf"), -1, 2**31, 10**400])
@pytest.mark.parametrize("place", ["input_tokens", "output_tokens", "input_tokens_cache_read"])
def test_a_count_that_cannot_be_costs_no_answer_and_makes_tokens_unknown(
    write: Callable[..., Path], place: str, count: float
) -> None:
    sample = inspected(1, "Say yes.", "Answer: yes")
    sample["output"]["usage"][place] = count
    sample["output"]["time"] = count
    (found,) = read(write([sample]))
    assert found.answer.response == "Answer: yes"
    assert (found.answer.input_tokens, found.answer.output_tokens) == (0, 0)
    assert 0 <= found.answer.latency_ms < 1e12


def test_epochs_are_repeats_and_system_messages_part_of_the_prompt(write: Callable[..., Path]) -> None:
    second = inspected(1, "Say yes.", "no", epoch=2)
    second["messages"].insert(0, {"role": "system", "content": "Be brief."})
    found = [sample.answer for sample in read(write([SAMPLES[0], second]))]
    assert [(a.item, a.repeat) for a in found] == [(0, 0), (0, 1)]
    assert found[1].prompt == "system:\nBe brief.\n\nuser:\nSay yes."


@pytest.mark.parametrize(
    ("ids", "first_id", "rows"),
    [
        ([1, 2], None, [0, 1]),
        ([0, 1], None, [0, 1]),
        (["3", "1"], None, [2, 0]),
        ([10, 12], 10, [0, 2]),
        (["a", "b"], None, [0, 1]),
    ],
)
def test_ids_tell_rows(write: Callable[..., Path], ids: list[Any], first_id: int | None, rows: list[int]) -> None:
    samples = [inspected(name, "p", "y") for name in ids]
    assert [sample.item for sample in read(write(samples, header(ids=ids)), first_id)] == rows


@pytest.mark.parametrize(
    "spec",
    [
        {"dataset": {"sample_ids": ["a"], "shuffled": True}},
        {"config": {"limit": [5, 9]}},
        {"config": {"sample_id": "a"}},
    ],
)
def test_ids_that_are_no_numbers_tell_no_row_of_a_part(write: Callable[..., Path], spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="its id 'a' is not a row number"):
        read(write([inspected("a", "p", "y")], header(ids=["a"], **spec)))


def test_attached_texts_reasoning_and_rows_are_found(write: Callable[..., Path]) -> None:
    parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "attachment://k"}]
    sample = inspected(1, "attachment://p", "")
    sample["output"]["completion"] = "attachment://k"
    sample["messages"][1]["content"] = parts
    sample |= {
        "attachments": {"k": "Answer: yes", "p": "a long prompt"},
        "metadata": {"sentence": "s"},
        "choices": ["x"],
    }
    (found,) = read(write([sample]))
    assert (found.answer.response, found.answer.prompt) == ("Answer: yes", "user:\na long prompt")
    assert found.row == {"sentence": "s", "sample": {"input": "a long prompt", "choices": ["x"]}}


def test_a_sample_that_failed_is_an_answer_with_the_reason(write: Callable[..., Path]) -> None:
    broken = inspected(1, "p", "", error={"message": "boom"}, output={"model": "", "choices": [], "completion": ""})
    silent = inspected(2, "p", "", output={})
    first, second = read(write([broken, silent]))
    assert (first.answer.error, second.answer.error) == ("Inspect had an error: boom", "The log has no answer for it.")


@pytest.mark.parametrize("sample", [{"id": 1, "epoch": 0}, {"epoch": 1, "id": None}, {"id": 0, "epoch": 1}])
def test_a_sample_that_is_none_is_named(write: Callable[..., Path], sample: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="it cannot be read"):
        read(write([SAMPLES[0], {**inspected(2, "p", "y"), **sample}]))


def damaged(tmp_path: Path) -> Path:
    file = zstandard(tmp_path / "log.eval", {"header.json": json.dumps(header()).encode()})
    raw = bytearray(file.read_bytes())
    raw[60] ^= 0xFF
    file.write_bytes(raw)
    return file


def plain(text: bytes, name: str = "log.eval") -> Callable[[Path], Path]:
    def written(tmp_path: Path) -> Path:
        (tmp_path / name).write_bytes(text)
        return tmp_path / name

    return written


@pytest.mark.parametrize(
    "written",
    [
        damaged,
        plain(b""),
        plain(b"PK\x03\x04" + b"\x00" * 100),
        plain(b"", "log.json"),
        plain(b"[]", "log.json"),
        plain(b'{"eval": {"task": "t"', "log.json"),
        plain(b'{"eval": {"task": 5}, "samples": []}', "log.json"),
        plain(b'{"a": "\xff"}', "log.json"),
        plain(b'{"a": ' + b"[" * 100_000, "log.json"),
        plain(b'{"results": {}}', "log.json"),
    ],
)
def test_what_is_no_log_is_refused_with_its_name(tmp_path: Path, written: Callable[[Path], Path]) -> None:
    with pytest.raises(InvalidError, match=r"log\.(eval|json)"):
        inspect.read(written(tmp_path), None, None)


def test_a_document_cut_within_its_samples_says_where(tmp_path: Path) -> None:
    file = document(tmp_path / "log.json", SAMPLES)
    whole = file.read_text()
    file.write_text(whole[: whole.rindex('"completion"')])
    with pytest.raises(InvalidError, match="after sample 1"):
        read(file)
