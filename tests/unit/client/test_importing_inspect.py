"""Logs of Inspect: archives and documents, ids and attachments, and bad ones."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from tests.unit.client.logs import archive, header, inspected
from touchstone_client.errors import InvalidError
from touchstone_client.importing import inspect
from touchstone_client.importing.archive import Archive
from touchstone_client.importing.json_stream import members
from touchstone_client.importing.log import Sample

SAMPLES = [inspected(1, "Say yes.", "Answer: yes"), inspected(2, "Say no.", "Answer: no")]


def document(file: Path, samples: Sequence[Any], head: dict[str, Any] | None = None) -> Path:
    file.write_text(json.dumps({**(head or header()), "samples": samples, "reductions": []}, indent=2))
    return file


def read(file: Path, first_id: int | None = None) -> list[Sample]:
    return list(inspect.read(file, None, first_id).samples())


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
    with pytest.raises(InvalidError, match="its id 'a' tells no row"):
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
    assert (first.answer.error, second.answer.error) == ("Inspect had an error: boom", "The log has no answer to it.")


@pytest.mark.parametrize("sample", [{"id": 1, "epoch": 0}, {"epoch": 1, "id": None}, {"id": 0, "epoch": 1}])
def test_a_sample_that_is_none_is_named(write: Callable[..., Path], sample: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match="it cannot be read"):
        read(write([SAMPLES[0], {**inspected(2, "p", "y"), **sample}]))


# -- archives ----------------------------------------------------------------------------------------------------------


def zstandard(file: Path, members_: dict[str, bytes], size: int | None = None) -> Path:
    """An archive as Inspect packs it, which Python's zipfile of this version cannot write."""
    stored = BytesIO()
    with zipfile.ZipFile(stored, "w") as made:
        for name, data in members_.items():
            made.writestr(name, bytes(pyarrow.Codec("zstd").compress(data)))
    raw = bytearray(stored.getvalue())
    for signature, method, checksum, length in ((b"PK\x03\x04", 8, 14, 22), (b"PK\x01\x02", 10, 16, 24)):
        place = -1
        for data in members_.values():
            place = raw.index(signature, place + 1)
            struct.pack_into("<H", raw, place + method, 93)
            struct.pack_into("<I", raw, place + checksum, zlib.crc32(data))
            struct.pack_into("<I", raw, place + length, len(data) if size is None else size)
    file.write_bytes(raw)
    return file


def test_archives_as_inspect_packs_them_are_read(tmp_path: Path) -> None:
    packed = {"samples/1_epoch_1.json": json.dumps(SAMPLES[0]).encode(), "header.json": json.dumps(header()).encode()}
    assert [sample.answer.response for sample in read(zstandard(tmp_path / "log.eval", packed))] == ["Answer: yes"]


@pytest.mark.parametrize("size", [None, 10])
def test_a_bomb_ends_at_the_bound_whatever_its_header_says(tmp_path: Path, size: int | None) -> None:
    zeros = b"0" * 50_000_000
    with zipfile.ZipFile(tmp_path / "deflated.eval", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", zeros)
    for file in (tmp_path / "deflated.eval", zstandard(tmp_path / "zstd.eval", {"header.json": zeros}, size)):
        opened = Archive(file, 1_000_000, 10_000_000)
        tracemalloc.start()
        with pytest.raises(ValueError, match="unpacks to more than"):
            opened.read("header.json")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        opened.close()
        assert peak < 10_000_000


def test_many_members_together_have_a_bound_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "many.eval", "w", zipfile.ZIP_DEFLATED) as made:
        for name in "abc":
            made.writestr(name, b"0" * 900_000)
    opened = Archive(tmp_path / "many.eval", 1_000_000, 2_000_000)
    assert [len(opened.read(name)) for name in "ab"] == [900_000, 900_000]
    with pytest.raises(ValueError, match="unpacks to more than"):
        opened.read("c")
    opened.close()


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


# -- long documents ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"a": 1, "samples": [1, {"b": "é𝔘"}, "x"], "z": null}', '{"samples": []}', "{}"])
def test_members_are_those_of_the_whole_document(text: str) -> None:
    for padding in (0, 1024 * 1024 - 20, 1024 * 1024 - 21, 1024 * 1024 - 22):
        found = list(members(BytesIO((" " * padding + text).encode()), "samples", 10_000_000))
        whole = json.loads(text)
        expected = [
            pair
            for name, value in whole.items()
            for pair in ([(name, each) for each in value] if name == "samples" else [(name, value)])
        ]
        assert found == expected


def test_a_long_document_is_read_sample_by_sample(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    with file.open("w") as opened:
        opened.write(json.dumps(header())[:-1] + ', "samples": [')
        for number in range(1, 401):
            opened.write(
                ("," if number > 1 else "") + json.dumps(inspected(number, "é" * 20_000, "y"), ensure_ascii=False)
            )
        opened.write("]}")
    tracemalloc.start()
    assert sum(1 for _ in inspect.read(file, None, None).samples()) == 400
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.stat().st_size > 16_000_000
    assert peak < 12_000_000


def test_a_value_beyond_any_measure_ends_the_reading() -> None:
    with pytest.raises(ValueError, match="a value is longer than"):
        list(members(BytesIO(b'{"a": "' + b"x" * 9_000_000), "samples", 2_000_000))
