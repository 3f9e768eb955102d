"""An application instead of a model: what it is asked with, and where its answer is found."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from services import further_fields
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.http import HttpProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.application_server import ApplicationServer
from tests.servers.stub import Behaviour, Fault
from tests.unit.evaluator.providers.http_calls import TABLE
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("system", "Be brief."), Message("user", 'say "{model}" \\ {x}')), "positive", "h", "p")


async def call(
    stub: ApplicationServer,
    table: dict[str, Any] | None = None,
    sampling: job_pb2.Sampling | None = None,
    model: str = "app",
    item: Item = ITEM,
    **changes: Any,
) -> Response:
    async with stub:
        options = HttpOptions.read(TABLE | (table or {}))
        provider = HttpProvider(replace(Endpoint("app", "http", stub.url, http=options), **changes))
        try:
            return await provider.generate(Request(model, sampling or job_pb2.Sampling(), TASK, item))
        finally:
            await provider.close()


async def refusal(stub: ApplicationServer, table: dict[str, Any] | None = None, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(stub, table, **changes)
    return caught.value


def yes() -> ApplicationServer:
    return ApplicationServer(Behaviour(answer=lambda prompt: "Answer: yes"))


async def test_a_prompt_with_quotes_and_braces_arrives_as_it_is() -> None:
    stub = yes()
    await call(stub, {"request": '{"question": "Q: {prompt} {{model}} {\\"k\\": {}}", "to": "{model}", "n": 1}'})
    assert stub.records[0].body == {
        "question": 'Q: Be brief.\n\nsay "{model}" \\ {x} {model} {"k": {}}',
        "to": "app",
        "n": 1,
    }


async def test_the_systems_words_stand_apart_where_they_have_a_place() -> None:
    stub = yes()
    await call(stub, {"request": {"question": "{prompt}", "rules": "{system}"}})
    assert stub.records[0].body == {"question": 'say "{model}" \\ {x}', "rules": "Be brief."}


async def test_messages_become_a_list_and_numbers_stay_numbers() -> None:
    stub = yes()
    table = {"request": {"messages": "{messages}", "options": {"temperature": "{temperature}", "seed": "{seed}"}}}
    await call(stub, table, job_pb2.Sampling(temperature=0.5))
    assert stub.records[0].body == {
        "messages": [{"role": message.role, "content": message.content} for message in ITEM.messages],
        "options": {"temperature": 0.5},
    }


async def test_stop_sequences_are_sent_where_they_have_a_place() -> None:
    stub = yes()
    await call(stub, {"request": {"question": "{prompt}", "stop": "{stop}"}}, item=replace(ITEM, stop=("\n\n", "Q:")))
    assert stub.records[0].body["stop"] == ["\n\n", "Q:"]


async def test_an_uploaded_rows_stop_strings_without_a_place_are_refused() -> None:
    stub = yes()
    error = await refusal(stub, item=replace(ITEM, stop=("Q:",), custom_id="row-1"))
    assert error.fatal
    assert error.message.startswith("app does not take stop.")
    assert stub.records == []


async def test_a_parameter_without_a_place_is_refused_and_not_dropped() -> None:
    stub = yes()
    error = await refusal(stub, sampling=job_pb2.Sampling(top_k=5))
    assert error.fatal
    assert error.message == "app does not take top_k. Leave it out of the job's parameters."
    assert stub.records == []


async def test_what_was_sent_beside_the_question_is_recorded() -> None:
    sampling = job_pb2.Sampling(temperature=0.5)
    further_fields.write(sampling, {"deep": True})
    stub = yes()
    table = {"request": {"question": "Q: {prompt}", "t": "{temperature}"}}
    assert (await call(stub, table, sampling)).parameters == '{"deep":true,"question":"Q: {prompt}","t":0.5}'
    assert stub.records[0].body["deep"] is True


async def test_a_get_puts_the_fields_into_the_query() -> None:
    stub = yes()
    response = await call(stub, {"method": "GET", "request": {"question": "{prompt}", "n": 3}})
    assert stub.records[0].body == {"question": 'Be brief.\n\nsay "{model}" \\ {x}', "n": "3"}
    assert response.text == "Answer: yes"


async def test_an_answer_is_read_with_its_figures() -> None:
    table = {
        "input_tokens": "$.usage.read",
        "output_tokens": "$.usage.written",
        "finish_reason": "$.finish",
        "model": "$.model",
        "error": "$.error",
    }
    response = await call(yes(), table, prices={"input": 1.0, "output": 2.0})
    assert response == Response(
        "Answer: yes",
        finish_reason="done",
        input_tokens=6,
        output_tokens=2,
        latency_ms=response.latency_ms,
        served_model="app-7",
        parameters='{"question":"{prompt}"}',
        cost_usd=10e-6,
    )


@pytest.mark.parametrize("table", [{}, {"output_tokens": "$.usage.written"}, {"input_tokens": "$.finish"}])
async def test_tokens_that_are_not_told_are_unknown_and_cost_nothing_that_is_known(table: dict[str, Any]) -> None:
    response = await call(yes(), table, prices={"input": 1.0, "output": 2.0})
    assert response.input_tokens is None
    assert response.output_tokens == (2 if "output_tokens" in table else None)
    assert response.cost_usd is None


async def test_parts_of_an_answer_are_joined() -> None:
    response = await call(yes(), {"answer": "$.output[?@.type=='message'].content[*].text"})
    assert response.text == "Answer:yes"


async def test_a_number_is_an_answer() -> None:
    assert (await call(yes(), {"answer": "$.reply.certain"})).text == "0.9"


async def test_a_reply_that_is_no_json_is_an_answer_where_the_whole_is_asked_for() -> None:
    stub = yes()
    stub.plain = True
    assert (await call(stub, {"answer": "$"})).text == "Answer: yes"


async def test_a_path_that_leads_nowhere_says_so_and_is_not_tried_again() -> None:
    error = await refusal(yes(), {"answer": "$.reply.words"})
    assert (error.retryable, error.fatal) == (False, False)
    assert error.message == (
        "app sent an answer in which there is no .words at $.reply, which has text, certain. "
        "Correct http.answer in the endpoints file."
    )


async def test_a_path_to_an_object_is_no_answer() -> None:
    error = await refusal(yes(), {"answer": "$.reply"})
    assert error.message == "app has no text at $.reply. Point http.answer in the endpoints file at a text."


async def test_an_error_within_an_answer_is_a_failed_call() -> None:
    error = await refusal(yes(), {"error": "$.finish"})
    assert error.retryable
    assert error.message == "app failed while answering: done. Check its log or status page, then retry."


async def test_the_key_stands_in_the_configured_header_only() -> None:
    stub = yes()
    stub.behaviour.api_key = "s3"
    await call(stub, {"headers": {"X-Key": "{key}", "X-Team": "eval"}}, api_key_env="K", api_key="s3")
    headers = stub.records[0].headers
    assert (headers["X-Key"], headers["X-Team"]) == ("s3", "eval")
    assert "Authorization" not in headers


async def test_without_a_header_for_it_the_key_is_a_bearer_token() -> None:
    stub = yes()
    await call(stub, api_key_env="K", api_key="s3")
    assert stub.records[0].headers["Authorization"] == "Bearer s3"


async def test_its_one_model_has_the_endpoints_name() -> None:
    provider = HttpProvider(Endpoint("app", "http", "http://127.0.0.1:9", http=HttpOptions.read(TABLE)))
    assert [model.model for model in (await provider.list_models()).models] == ["app"]
    several = HttpProvider(
        Endpoint("app", "http", "http://127.0.0.1:9", models=("v1", "v2"), http=HttpOptions.read(TABLE))
    )
    assert [model.model for model in (await several.list_models()).models] == ["v1", "v2"]
    error = await refusal(yes(), model="gpt")
    assert error.fatal
    assert error.message == "app does not have model gpt. Choose one that it lists."


async def test_a_key_in_an_error_at_the_configured_place_is_not_repeated() -> None:
    error = await refusal(yes(), {"error": "$.finish"}, api_key_env="K", api_key="done")
    assert error.message == "app failed while answering: [key]. Check its log or status page, then retry."


async def test_a_key_in_an_error_is_not_repeated() -> None:
    stub = ApplicationServer(Behaviour(faults=deque([Fault("400", message="bad token s3cr3t-key")])))
    error = await refusal(stub, api_key_env="K", api_key="s3cr3t-key")
    assert error.message == "app refused a call with status 400: bad token [key]. Correct the cause, then retry."
