"""Answers in the shape of OpenAI's batch output: as lines, and as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.export.exports import export
from services.results.intake import writes
from services.results.items.annotate import annotate
from services.results.storage.database import Connection
from services.rpc import Identity
from tests.unit.results.builders import ERROR, START, UNPARSED, answer, batch, event, job, plan
from tests.unit.results.dataset_runs import EXACT, calling, row, stored
from touchstone.v1 import item_result_pb2, suite_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import Annotation, ExportRequest, ListItemsRequest

REFUSED = item_result_pb2.OUTCOME_REFUSED
ANN = Identity("ann", token_pb2.ROLE_USER)


def exported(connection: Connection, format_: ExportRequest.Format, **fields: object) -> str:
    items = ListItemsRequest(job_id="j", **fields)  # type: ignore[arg-type]
    request = ExportRequest(kind=ExportRequest.KIND_BATCH_OUTPUT, format=format_, items=items)
    return b"".join(piece.data for piece in export(connection, request)).decode()


def lines(connection: Connection, **fields: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(connection, ExportRequest.FORMAT_JSONL, **fields).splitlines()]


def table(connection: Connection, **fields: object) -> list[dict[str, str]]:
    text = exported(connection, ExportRequest.FORMAT_CSV, **fields)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def mark(connection: Connection, item: int, verdict: int, corrected: str = "", note: str = "") -> None:
    request = pb.AnnotateItemRequest(
        job_id="j",
        task="rows",
        item=item,
        verdict=verdict,  # type: ignore[arg-type]
        corrected_answer=corrected,
        note=note,
    )
    annotate(connection, request, ANN, START.replace(tzinfo=None))


def test_a_line_is_a_request_and_its_chat_completion(connection: Connection) -> None:
    made = row(0, custom_id="candidate-1", finish_reason="length", served_model="m-2026", reasoning="hm")
    made.reasoning_tokens = 2
    stored(connection, "j", [made])
    (line,) = lines(connection)
    assert list(line) == ["id", "custom_id", "response", "error"]
    response, body = line["response"], line["response"]["body"]
    assert line["id"].startswith("batch_req_")
    assert (line["custom_id"], line["error"]) == ("candidate-1", None)
    assert response["status_code"] == 200
    assert response["request_id"].startswith("req_")
    assert list(body) == ["id", "object", "created", "model", "choices", "usage"]
    assert (body["object"], body["model"], body["created"]) == ("chat.completion", "m-2026", int(START.timestamp()))
    (choice,) = body["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "length")
    assert choice["message"] == {"role": "assistant", "content": "response 0", "reasoning": "hm"}
    assert body["usage"] == {
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "total_tokens": 23,
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def test_a_failed_request_has_its_error_and_no_response(connection: Connection) -> None:
    stored(connection, "j", [row(0), row(1, outcome=ERROR, error="HTTP 500: overloaded"), row(2, outcome=UNPARSED)])
    failed = lines(connection)[1]
    assert failed["response"] is None
    assert failed["error"] == {"code": "infrastructure_error", "message": "HTTP 500: overloaded"}
    assert [one["custom_id"] for one in lines(connection, filter=ListItemsRequest.FILTER_FINAL)] == [
        "candidate-0",
        "candidate-2",
    ]
    assert [one["custom_id"] for one in lines(connection, filter=ListItemsRequest.FILTER_ERRORS)] == ["candidate-1"]


def test_ids_are_unique_and_the_same_each_time(connection: Connection) -> None:
    stored(connection, "j", [row(i) for i in range(50)])
    first, again = lines(connection), lines(connection)
    assert first == again
    assert len({one["id"] for one in first}) == len({one["response"]["body"]["id"] for one in first}) == 50


def test_what_was_cut_or_refused_says_so(connection: Connection) -> None:
    cut = row(0, error="The response of 300000 bytes was cut to 262144 for storage.")
    stored(connection, "j", [cut, row(1, outcome=REFUSED, response="", error="blocked: safety")])
    one, two = (line["response"]["body"] for line in lines(connection))
    assert one["note"] == cut.error
    assert (two["note"], two["choices"][0]["message"]["content"]) == ("blocked: safety", "")


def test_dropped_texts_are_no_empty_answers(connection: Connection) -> None:
    stored(connection, "j", [row(i, 1.0, metadata={"name": f"n{i}"}, messages="[]") for i in range(2)], EXACT)
    connection.execute("INSERT INTO answer_texts VALUES ('j', 1, now()::TIMESTAMP, 1, now()::TIMESTAMP, 1)")
    connection.execute("UPDATE items SET prompt = '', response = ''")
    for line in lines(connection):
        assert line["response"] is None
        assert line["error"]["code"] == "text_dropped"
        assert line["custom_id"].startswith("candidate-")
    first = table(connection)[0]
    assert (first["custom_id"], first["metadata.name"], first["score"]) == ("candidate-0", "n0", "1.0")
    assert (first["response"], "was dropped" in first["error"]) == ("", True)


def test_a_suites_items_have_ids_too(connection: Connection) -> None:
    repeated = plan("t", 1)
    repeated.repeats = 2
    writes.store_events(connection, [event("1", job("j", repeated))])
    writes.store_items(connection, [batch("j", "t", [answer(7), answer(7, repeat=1)])])
    assert [line["custom_id"] for line in lines(connection)] == ["t-7", "t-7-1"]


def test_the_table_has_a_column_for_each_field_of_the_metadata(connection: Connection) -> None:
    rows = [
        row(0, 0.5, metadata={"name": "Ada", "age": -5, "=x": "=cmd()", "tags": ["a"]}, cost_usd=0.25),
        row(1, metadata={"ok": True, "name": None}),
        row(2, outcome=ERROR, error="-timeout"),
    ]
    stored(connection, "j", rows, EXACT)
    mark(connection, 0, Annotation.VERDICT_FIX, "+1", "@home")
    found = table(connection)
    assert list(found[0]) == [
        *("custom_id", "status", "response", "reference", "score", "prediction", "latency_ms", "input_tokens"),
        *("output_tokens", "cost_usd", "error", "verdict", "corrected_answer", "note"),
        *("metadata.name", "metadata.age", "metadata.=x", "metadata.tags", "metadata.ok"),
    ]
    first, second, third = found
    assert (first["status"], first["score"], first["reference"], first["cost_usd"]) == (
        "answered",
        "0.5",
        "right",
        "0.25",
    )
    assert (first["verdict"], first["corrected_answer"], first["note"]) == ("fix", "'+1", "'@home")
    assert (first["metadata.age"], first["metadata.=x"], first["metadata.tags"]) == ("-5", "'=cmd()", '["a"]')
    assert (second["score"], second["metadata.ok"], second["metadata.name"]) == ("", "true", "")
    assert (third["status"], third["error"]) == ("infrastructure_error", "'-timeout")


def test_metadata_columns_are_those_of_the_chosen_items_and_not_without_end(connection: Connection) -> None:
    rows = [row(0, metadata={f"f{i}": i for i in range(150)}), row(1, metadata={"only": 1})]
    stored(connection, "j", rows)
    many = [name for name in table(connection)[0] if name.startswith("metadata.")]
    assert many == [f"metadata.f{i}" for i in range(100)]
    (few,) = table(connection, query="candidate-1")
    assert [name for name in few if name.startswith("metadata.")] == ["metadata.only"]
    assert not table(connection, conditions=pb.ItemConditions(custom_id="no"))


def test_hostile_texts_come_whole_in_both_formats(connection: Connection) -> None:
    texts = ["=1+1", 'say "a"', "two\r\nlines", "\x00", "ünïcødé ☃", "a\u2028b\u2029c\x85d", "</script>"]
    stored(connection, "j", [row(i, response=text, metadata={"t": text}) for i, text in enumerate(texts)])
    said = [line["response"]["body"]["choices"][0]["message"]["content"] for line in lines(connection)]
    assert said == texts
    cells = [one["metadata.t"] for one in table(connection)]
    assert cells == ["'=1+1", *texts[1:]]


def test_numbers_that_no_json_holds_are_none(connection: Connection) -> None:
    made = row(0)
    made.metadata = '{"a": 1e999, "b": NaN, "c": 1}'
    stored(connection, "j", [made])
    (found,) = table(connection)
    assert (found["metadata.a"], found["metadata.b"], found["metadata.c"]) == ("", "", "1")
    items = ExportRequest(kind=ExportRequest.KIND_ITEMS, format=ExportRequest.FORMAT_JSONL)
    items.items.job_id = "j"
    (line,) = b"".join(piece.data for piece in export(connection, items)).splitlines()
    assert json.loads(line)["metadata"] == {"a": None, "b": None, "c": 1}


@pytest.mark.parametrize("format_", [ExportRequest.FORMAT_JSON, ExportRequest.FORMAT_PARQUET])
def test_other_formats_are_refused(connection: Connection, format_: ExportRequest.Format) -> None:
    stored(connection, "j", [row(0)])
    with pytest.raises(InvalidRequestError, match="JSONL or CSV") as refused:
        exported(connection, format_)
    assert refused.value.field == "format"


def test_continuations_are_no_responses(connection: Connection) -> None:
    made = job("j", plan("t", 1))
    made.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    writes.store_events(connection, [event("1", made)])
    with pytest.raises(InvalidRequestError, match="log-likelihood"):
        lines(connection)


@pytest.mark.stack
def test_memory_does_not_grow_with_the_rows(connection: Connection) -> None:
    def peak(request: ExportRequest) -> int:
        tracemalloc.start()
        for _ in export(connection, request):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    stored(connection, "j", [row(0)], planned=4000)
    for start in range(1, 4001, 500):
        made = [row(i, response="word " * 800, metadata={"name": f"n{i}"}) for i in range(start, start + 500)]
        writes.store_items(connection, [batch("j", "rows", made)])
    for format_ in (ExportRequest.FORMAT_JSONL, ExportRequest.FORMAT_CSV):
        request = ExportRequest(kind=ExportRequest.KIND_BATCH_OUTPUT, format=format_)
        request.items.job_id = "j"
        assert peak(request) < 10_000_000, "of 16 MB of answers"


def test_tool_calls_and_log_probabilities_stand_where_openai_has_them(connection: Connection) -> None:
    said = row(1)
    said.logprobs.add(token="r", logprob=-0.5, top=[{"token": "x", "logprob": -2}])
    stored(connection, "j", [calling(0, '{"b": 1.0, "a": 2}'), said])
    called, text = (line["response"]["body"]["choices"][0] for line in lines(connection))
    assert called == {
        "index": 0,
        "message": {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_0_0",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"b": 1.0, "a": 2}'},
                }
            ],
        },
        "finish_reason": "tool_calls",
    }
    assert text["logprobs"] == {
        "content": [{"token": "r", "logprob": -0.5, "top_logprobs": [{"token": "x", "logprob": -2}]}]
    }
    assert [one["response"] for one in table(connection)] == ['weather({"b": 1.0, "a": 2})', "response 1"]
