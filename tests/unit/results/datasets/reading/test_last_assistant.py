"""The assistant's last message is what an uploader says it is, and never the answer in the prompt by accident."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.results.export.exports import export
from services.results.items.annotate import annotate
from services.results.storage.database import Connection
from services.rpc import Identity
from tests.unit.results.builders import START
from tests.unit.results.dataset_runs import row as stored_row
from tests.unit.results.dataset_runs import stored
from tests.unit.results.uploads import batch_line, jsonl, upload
from touchstone.v1 import job_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.scoring_pb2 import Scoring

REFERENCE, PREFILL, REFUSE = (
    job_pb2.LAST_ASSISTANT_REFERENCE,
    job_pb2.LAST_ASSISTANT_PREFILL,
    job_pb2.LAST_ASSISTANT_REFUSE,
)
SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Capital of Peru?"}
SAID = {"role": "assistant", "content": "Lima"}
TUNING = {"messages": [SYSTEM, ASKED, SAID]}
PLAIN = {"messages": [SYSTEM, ASKED]}


def turns(row: Any) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in row.messages]


@pytest.mark.parametrize("data", [jsonl(PLAIN, TUNING), jsonl(batch_line("a"), batch_line("b", **TUNING))])
def test_a_file_with_such_a_row_is_refused_until_its_owner_says_what_it_is(data: bytes) -> None:
    made = upload(data)
    assert made.refused.startswith("The row on line 2 ends with a message of the assistant,")
    assert all(choice in made.refused for choice in ("reference", "prefill", "refuse"))
    assert made.refusal is not None
    assert made.refusal.field == "last_assistant"


def test_a_file_without_such_rows_needs_no_choice_and_keeps_none() -> None:
    for choice in (job_pb2.LAST_ASSISTANT_UNSPECIFIED, REFERENCE, PREFILL, REFUSE):
        made = upload(jsonl(PLAIN, {"messages": [ASKED, SAID, ASKED]}), last_assistant=choice)
        assert made.dataset is not None
        assert (made.dataset.last_assistant, made.dataset.rows_with_last_assistant) == (0, 0)


def test_a_choice_that_is_none_is_refused() -> None:
    assert "reference, prefill or refuse" in upload(jsonl(PLAIN), last_assistant=9).refused


@pytest.mark.parametrize("line", [TUNING, batch_line("a", **TUNING)])
def test_the_reference_leaves_the_prompt(line: dict[str, Any]) -> None:
    made = upload(jsonl(line), last_assistant=REFERENCE)
    (row,) = made.rows
    assert turns(row) == [("system", "Be brief."), ("user", "Capital of Peru?")]
    assert row.reference == '"Lima"'
    assert made.dataset is not None
    assert (made.dataset.last_assistant, made.dataset.rows_with_last_assistant) == (REFERENCE, 1)
    assert (made.dataset.rows_with_reference, made.dataset.prompt_characters) == (1, len("Be brief.Capital of Peru?"))


def test_the_reference_is_as_the_scorer_needs_it() -> None:
    scoring = Scoring(scorer="json")
    said = {"role": "assistant", "content": '{"a": 1}'}
    (row,) = upload(jsonl({"messages": [ASKED, said]}), scoring=scoring, last_assistant=REFERENCE).rows
    assert json.loads(row.reference) == {"a": 1}
    made = upload(jsonl(TUNING), scoring=Scoring(scorer="numeric"), last_assistant=REFERENCE)
    assert "is not a number" in made.reasons[1]


def test_a_prefill_stays_in_the_prompt() -> None:
    made = upload(jsonl(TUNING, TUNING | {"reference": "Lima, Peru"}), last_assistant=PREFILL)
    assert [turns(row)[-1] for row in made.rows] == [("assistant", "Lima")] * 2
    assert [row.reference for row in made.rows] == ["", '"Lima, Peru"']
    assert made.dataset is not None
    assert (made.dataset.last_assistant, made.dataset.rows_with_last_assistant) == (PREFILL, 2)


def test_refused_rows_are_named_line_by_line() -> None:
    made = upload(jsonl(PLAIN, TUNING, PLAIN, TUNING), last_assistant=REFUSE)
    assert [*made.reasons] == [2, 4]
    assert all("last message is the assistant's" in reason for reason in made.reasons.values())


def test_a_template_that_ends_with_the_assistant_is_asked_about_too() -> None:
    template = json.dumps([{"role": "user", "content": "{{q}}"}, {"role": "assistant", "content": "{{a}}"}])
    data = jsonl({"q": "2+2?", "a": "4"})
    assert "last_assistant" in upload(data, template=template).refused
    (row,) = upload(data, template=template, last_assistant=REFERENCE).rows
    assert (turns(row), row.reference) == ([("user", "2+2?")], '"4"')


def test_calls_of_the_last_message_are_expected_by_the_scorer_of_calls() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"of": "Peru"}'}}]
    making = {"messages": [SYSTEM, ASKED, {"role": "assistant", "content": "Wait.", "tool_calls": calls}]}
    scoring = Scoring(scorer="tool_calls")
    rows = upload(jsonl(making, TUNING), last_assistant=REFERENCE, scoring=scoring).rows
    assert [turns(row) for row in rows] == [[("system", "Be brief."), ("user", "Capital of Peru?")]] * 2
    assert [json.loads(row.reference) for row in rows] == [calls, []]
    assert not any(row.has_parts for row in rows)
    for choice, scorer in ((REFERENCE, "json"), (PREFILL, "tool_calls")):
        made = upload(jsonl(making), last_assistant=choice, scoring=Scoring(scorer=scorer))
        assert "a reference for the scorer tool_calls only" in made.reasons[1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (TUNING | {"reference": "Lima"}, "has both a reference and a last message of the assistant"),
        ({"messages": [SAID]}, "no question is left"),
        ({"messages": [{"role": "user", "content": " "}, SAID]}, "no question is left"),
    ],
)
def test_what_cannot_be_a_reference_is_a_wrong_line(line: dict[str, Any], reason: str) -> None:
    made = upload(jsonl(line), last_assistant=REFERENCE)
    assert reason in made.reasons[1]


def test_golden_answers_come_back_as_the_rows_that_were_asked_with_their_answers(connection: Connection) -> None:
    chats = [
        [SYSTEM, ASKED],
        [ASKED, SAID, {"role": "user", "content": "And of Chile?\n\nassistant:\nno"}],
        [ASKED, {"role": "assistant", "content": "The capital is"}],
    ]
    stored(connection, "j", [stored_row(i, messages=json.dumps(chat), prompt="…") for i, chat in enumerate(chats)])
    for item, (verdict, corrected) in enumerate(
        [(pb.Annotation.VERDICT_GOLDEN, ""), (pb.Annotation.VERDICT_FIX, " ü\n"), (pb.Annotation.VERDICT_GOLDEN, "")]
    ):
        request = pb.AnnotateItemRequest(
            job_id="j", task="rows", item=item, verdict=verdict, corrected_answer=corrected
        )
        annotate(connection, request, Identity("ann", token_pb2.ROLE_USER), START.replace(tzinfo=None))
    wanted = pb.ExportRequest(kind=pb.ExportRequest.KIND_GOLDEN, format=pb.ExportRequest.FORMAT_JSONL)
    wanted.items.job_id = "j"
    data = b"".join(piece.data for piece in export(connection, wanted))

    assert "last_assistant" in upload(data).refused
    rows = upload(data, last_assistant=REFERENCE).rows
    assert [turns(row) for row in rows] == [[(one["role"], one["content"]) for one in chat] for chat in chats]
    assert [json.loads(row.reference) for row in rows] == ["response 0", " ü\n", "response 2"]
