"""Long texts and metadata of items in lists."""

from __future__ import annotations

import json

from services.results.items import reads
from services.results.items.reads import EXCERPT_BYTES
from services.results.storage.database import Connection
from tests.unit.results.dataset_runs import calling, row, stored
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest


def test_in_lists_long_metadata_stay_an_object_and_long_messages_are_left_out(connection: Connection) -> None:
    made = row(0, metadata={"name": "Ada", "cv": "word " * 5000, "years": 3, "rest": list(range(2000)), "end": 1})
    made.messages = f'[{{"role":"user","content":"{"x" * 3000}"}}]'
    stored(connection, "j", [made])
    (listed,) = reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert listed.result.metadata.startswith('{"name": "Ada", "cv": "word word ')
    assert listed.result.metadata.endswith('…", "years": 3}')
    assert listed.result.messages == ""
    whole = reads.get_item(connection, pb.GetItemRequest(job_id="j", task="rows"))
    assert (whole.result.metadata, whole.result.messages) == (made.metadata, made.messages)


def test_of_long_tool_calls_the_beginning_is_listed_and_no_log_probability(connection: Connection) -> None:
    long = json.dumps({"text": "ü" * 3000}, ensure_ascii=False)
    made = calling(0, '{"a": 1}', long, '{"b": 2}')
    made.logprobs.add(token="a", logprob=-1)
    stored(connection, "j", [made])
    (one,) = reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert [call.arguments[:8] for call in one.result.tool_calls] == ['{"a": 1}', '{"text":']
    assert one.result.tool_calls[1].arguments.endswith("ü…")
    assert len(one.result.tool_calls[1].arguments.encode()) <= EXCERPT_BYTES
    assert not one.result.logprobs
