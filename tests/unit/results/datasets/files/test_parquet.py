"""Rows of Parquet files, and files that are meant to harm."""

from __future__ import annotations

import base64
import datetime
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

from services.results.datasets.frames import Limits
from tests.unit.results.datasets.children import run
from tests.unit.results.uploads import upload


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data, **options)
    return data.getvalue()


QUESTIONS = {"question": ["a", "b"], "answer": ["1", "2"]}


def test_rows_are_read_whatever_the_file_is_called() -> None:
    made = upload(parquet(QUESTIONS, row_group_size=1), name="rows.csv")

    assert [row.messages[0].content for row in made.rows] == ["a", "b"]
    assert made.dataset is not None
    assert made.dataset.reading.startswith("Parquet, read as question and answer")


def test_values_become_what_json_has() -> None:
    columns = {
        "question": pa.array(["q"]),
        "n": pa.array([2**60]),
        "x": pa.array([float("nan")]),
        "day": pa.array([datetime.date(2024, 1, 5)]),
        "moment": pa.array([1], pa.timestamp("ns", "UTC")),
        "price": pa.array([Decimal("1.50")]),
        "image": pa.array([{"bytes": b"png", "path": "a"}]),
        "tags": pa.array([["a", None]]),
        "level": pa.array(["hard"]).dictionary_encode(),
        "of": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    (row,) = upload(parquet(columns), template="{{question}}").rows

    assert json.loads(row.metadata) == {
        "question": "q",
        "n": 2**60,
        "x": None,
        "day": "2024-01-05",
        "moment": "1970-01-01T00:00:00+00:00",
        "price": "1.50",
        "tags": ["a", None],
        "level": "hard",
        "of": [["k", 1]],
    }


def test_messages_of_a_column_are_a_conversation() -> None:
    turns = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}]
    (row,) = upload(parquet({"messages": [turns], "reference": ["so"]})).rows

    assert [(message.role, message.content) for message in row.messages] == [("system", "Be short."), ("user", "Why?")]
    assert row.reference == '"so"'


WHOLE = parquet(QUESTIONS)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (WHOLE[:-1], "damaged or incomplete"),
        (WHOLE[: len(WHOLE) // 2], "damaged or incomplete"),
        (b"PAR1PAR1", "damaged or incomplete"),
        (b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1", "damaged or incomplete"),
        (b"PARE" + bytes(100), "an encrypted Parquet file"),
        (parquet({"question": [], "answer": []}), "no rows"),
        (parquet({f"c{place}": [1] for place in range(1001)}), "1,001 columns"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(data: bytes, reason: str) -> None:
    assert reason in upload(data).refused


def test_pages_that_are_damaged_are_refused() -> None:
    place = WHOLE.index(b"PAR1") + 4

    assert "damaged" in upload(WHOLE[:place] + b"\xff" * 60 + WHOLE[place + 60 :]).refused


def test_a_row_that_nests_too_deeply_is_named() -> None:
    made = upload(parquet({"question": ["a"], "answer": pa.array([nested(40)], nested_type(40))}))

    assert "nests more than 32" in made.reasons[1]


def nested(levels: int) -> Any:
    return {"a": nested(levels - 1)} if levels else "x"


def nested_type(levels: int) -> Any:
    return pa.struct([("a", nested_type(levels - 1))]) if levels else pa.string()


def test_more_rows_than_a_dataset_may_have_are_refused_before_any_is_read() -> None:
    assert "more than 1 row." in upload(WHOLE, limits=Limits(rows=1)).refused


def test_a_dictionary_that_stands_for_gigabytes_is_stopped() -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 1_000_000]))
    data = parquet({"question": pa.array(["q"] * 100_000), "answer": text}, compression="zstd")
    made = run([data])

    assert made.outcome.refusal is not None
    assert "memory" in made.outcome.refused or "compressed" in made.outcome.refused
    assert made.megabytes < 700


@pytest.mark.stack
def test_a_large_group_of_rows_is_read_piece_by_piece() -> None:
    rows = 30_000
    data = parquet(
        {"question": [f"{place} {'x' * 2_000}" for place in range(rows)], "answer": ["1"] * rows},
        row_group_size=rows,
        compression="none",
        use_dictionary=False,
    )
    made = run([data])

    assert made.outcome.dataset is not None, made.outcome.refusal
    assert made.outcome.dataset.rows == rows
    assert made.megabytes < 300


class Keys(KmsClient):  # type: ignore[misc]
    """Keeps keys as they are."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("readable_footer", [True, False])
def test_an_encrypted_file_is_called_so(readable_footer: bool) -> None:
    table = pa.table({"question": ["a"], "answer": ["b"]})
    asked = EncryptionConfiguration(footer_key="f", column_keys={"c": ["question"]}, plaintext_footer=readable_footer)
    factory = CryptoFactory(lambda _: Keys())
    keys = factory.file_encryption_properties(KmsConnectionConfig(), asked)
    file = io.BytesIO()
    with pq.ParquetWriter(file, table.schema, encryption_properties=keys) as writer:
        writer.write_table(table)
    assert "encrypted" in upload(file.getvalue(), name="rows.parquet").refused
