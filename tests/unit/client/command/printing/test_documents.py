"""Documents as the command writes them."""

from __future__ import annotations

import json

from google.protobuf import struct_pb2

from touchstone.v1 import item_result_pb2, job_pb2
from touchstone_client.command.printing.documents import document


def test_a_document_has_words_times_and_numbers() -> None:
    sampling = job_pb2.Sampling(temperature=0.0, extra_json='{"b":1,"a":1.0}')
    made = job_pb2.Job(
        job_id="x", state=job_pb2.Job.STATE_COMPLETED, spec=job_pb2.JobSpec(project_id=7, sampling=sampling)
    )
    made.created_at.FromJsonString("2026-11-20T14:04:09Z")
    found = document(made)
    assert (found["state"], found["created_at"], found["spec"]["project_id"]) == (
        "completed",
        "2026-11-20T14:04:09Z",
        7,
    )
    assert json.dumps(found["spec"]["sampling"]) == '{"temperature": 0.0, "extra": {"b": 1, "a": 1.0}}'
    old = job_pb2.Sampling(extra=struct_pb2.Struct(fields={"a": struct_pb2.Value(number_value=1)}))
    assert document(old) == {"extra": {"a": 1.0}}
    assert document(job_pb2.Sampling()) == {}
    assert "finished_at" not in found
    item = item_result_pb2.ItemResult(statistics={"correct": 1})
    assert document(item)["statistics"] == {"correct": 1.0}
    item = item_result_pb2.ItemResult(input_tokens=5, output_untold=True)
    assert (document(item)["input_tokens"], document(item)["output_tokens"]) == (5, None)
