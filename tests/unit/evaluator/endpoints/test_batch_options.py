"""Settings of batches in the endpoints file."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.evaluator.endpoints import table
from services.evaluator.provider_batches.planning import check
from touchstone.v1 import job_pb2


def test_another_kind_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidRequestError, match="kind openai or gemini, or leave provider_batch out"):
        check(job_pb2.JobSpec(endpoint="mine"), "vllm")


@pytest.mark.parametrize(
    ("kind", "values", "field"),
    [
        ("openai", {"batch": {"rows": 50_001}}, "batch"),
        ("gemini", {"batch": {"megabytes": 19}}, "batch"),
        ("openai", {"batch": {"pages": 3}}, "batch"),
        ("openai", {"batch": {"at_once": True}}, "batch"),
        ("anthropic", {"batch": {"rows": 5}}, "batch"),
        ("openai", {"prices": {"input": 1, "output": 1, "batch_share": 2}}, "prices"),
        ("openai", {"prices": {"batch_share": 0.5}}, "prices"),
    ],
)
def test_wrong_settings_are_refused(kind: str, values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        table.read({"name": "a", "kind": kind} | values, "file", {})
    assert refused.value.field == field
