"""OpenAI's own clients against an installation: chat completions and responses, of servers of its protocol and of
others."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.anthropic_server import AnthropicServer
from tests.servers.gemini_server import GeminiServer
from tests.servers.grok_server import GrokServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.stack

JAVASCRIPT = Path(__file__).parent / "openai_js"
KEY = "sk-of-the-provider-1234567890"
HELLO: list[Any] = [{"role": "user", "content": "hello there"}]
KINDS = ("gpt@local", "claude", "llama", "gemini-x", "grok-4")


def upper(prompt: str) -> str | Fault:
    faults = {
        "wrong key": Fault("401", message=f"Incorrect API key provided: {KEY}"),
        "too fast": Fault("429", retry_after="2", message="Slow down."),
        "no such field": Fault("400", message="Unknown parameter: 'foo'.", code="unknown_parameter"),
        "broken": Fault("broken"),
        "down": Fault("500"),
        "hang": Fault("hang"),
    }
    return faults.get(prompt, prompt.upper())


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Any]]:
    with stub_thread() as stubs:
        yield {
            "local": stubs.start(OpenAIServer(Behaviour(models=("gpt", "other"), answer=upper, api_key=KEY))),
            "second": stubs.start(OpenAIServer(Behaviour(models=("gpt",), answer=upper))),
            "claude": stubs.start(AnthropicServer(Behaviour(models=("claude",), answer=upper))),
            "gemini": stubs.start(GeminiServer(Behaviour(models=("gemini-x",), answer=upper))),
            "grok": stubs.start(GrokServer(Behaviour(models=("grok-4",), answer=upper))),
            "ollama": stubs.start(OllamaServer(Behaviour(models=("llama",), answer=upper))),
        }


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, servers: dict[str, Any], request: pytest.FixtureRequest
) -> Iterator[Stack]:
    kinds = {"local": "openai", "second": "openai", "claude": "anthropic"}
    endpoints: list[dict[str, Any]] = [
        {"name": name, "kind": kinds.get(name, name), "base_url": server.url, "concurrency": 4, "timeout_s": 4.0}
        for name, server in servers.items()
    ]
    endpoints[0] |= {"api_key_env": "PROXY_KEY", "prices": {"input": 1.0, "output": 2.0}}
    os.environ["PROXY_KEY"] = KEY
    with running(Stack(tmp_path_factory.mktemp("calls"), endpoints), request) as started:
        started.know_models(*servers)
        yield started


@pytest.fixture
def client(stack: Stack) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key="none-is-needed", max_retries=0) as made:
        yield made


def metered(stack: Stack, call_id: str) -> dict[str, Any]:
    """A call as it is stored, once it has ended."""
    found: dict[str, Any] = {}

    def ended() -> bool:
        calls = stack.get("/calls")["calls"]
        found.update(next((one for one in calls if one["call_id"] == call_id), {}))
        return bool(found.get("outcome", "unfinished") != "unfinished")

    until(ended)
    return found


@pytest.mark.parametrize("model", KINDS)
def test_a_chat_is_answered_and_metered(client: openai.OpenAI, stack: Stack, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=HELLO, max_completion_tokens=50, user="u-1")
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.content == "HELLO THERE"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    call = metered(stack, str(answer._request_id))
    assert (call["outcome"], call["status"], call["api"], call["user"]) == ("answered", 200, "chat", "local")
    assert (call["input_tokens"], call["output_tokens"]) == (
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
    )
    if model == "gpt@local":
        assert call["cost_usd"] == pytest.approx((call["input_tokens"] + 2 * call["output_tokens"]) / 1e6)


@pytest.mark.parametrize("model", KINDS)
def test_a_streamed_chat_comes_in_pieces(client: openai.OpenAI, model: str) -> None:
    chunks = list(
        client.chat.completions.create(model=model, messages=HELLO, stream=True, stream_options={"include_usage": True})
    )
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(texts) > 1
    assert "".join(texts) == "HELLO THERE"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0


@pytest.mark.parametrize("model", KINDS)
def test_a_response_is_answered_whole_and_streamed(client: openai.OpenAI, model: str) -> None:
    whole = client.responses.create(model=model, input="hello there", instructions="", max_output_tokens=50)
    assert whole.output_text == "HELLO THERE"
    assert whole.status == "completed"
    assert whole.usage is not None
    assert whole.usage.total_tokens > 0
    asked: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "hello there"}]}]
    if model == "grok-4":  # The stub's events come as they are, and lack what OpenAI's helper needs.
        events = list(client.responses.create(model=model, input=asked, stream=True))
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "HELLO THERE"
        assert events[-1].type == "response.completed"
        return
    with client.responses.stream(model=model, input=asked) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds.count("response.output_text.delta") > 1
    assert kinds[-1] == "response.completed"
    assert final.output_text == "HELLO THERE"


def test_without_asking_for_usage_a_stream_has_none_and_is_metered(stack: Stack, client: openai.OpenAI) -> None:
    made = client.chat.completions.with_raw_response.create(model="gpt@local", messages=HELLO, stream=True)
    chunks = list(made.parse())
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    assert metered(stack, made.headers["x-request-id"])["output_tokens"] > 0


def test_fields_reach_the_provider_as_they_are_in_their_order(client: openai.OpenAI, servers: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    client.chat.completions.create(
        model="gpt@local", messages=HELLO, response_format=form, n=2, seed=7, logprobs=True, extra_body={"own": [1, 2]}
    )
    body = servers["local"].records[-1].body
    assert json.dumps(body["response_format"]) == json.dumps(form)
    assert (body["model"], body["n"], body["seed"], body["logprobs"], body["own"]) == ("gpt", 2, 7, True, [1, 2])
    assert "temperature" not in body
    client.chat.completions.create(model="claude", messages=HELLO)
    assert "temperature" not in servers["claude"].records[-1].body


@pytest.mark.parametrize("model", KINDS)
def test_tools_are_called_in_openais_form(client: openai.OpenAI, model: str) -> None:
    function = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    tool: Any = {"type": "function", "function": function}
    answer = client.chat.completions.create(
        model=model,
        messages=HELLO,
        tools=[tool],
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    calls = answer.choices[0].message.tool_calls or []
    assert len(calls) == 1
    call = calls[0]
    assert call.type == "function"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] == "Rom"
    again: list[Any] = [
        *HELLO,
        answer.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    assert client.chat.completions.create(model=model, messages=again, tools=[tool]).choices[0].finish_reason == "stop"
    flat: Any = {"type": "function", **function}
    response = client.responses.create(model=model, input="hello there", tools=[flat])
    assert [item.type for item in response.output] == ["function_call"]


@pytest.mark.parametrize(
    ("model", "fields", "param"),
    [
        ("claude", {"n": 2}, "n"),
        ("claude", {"seed": 1}, "seed"),
        ("claude", {"logit_bias": {"1": 2}}, "logit_bias"),
        ("llama", {"audio": {"voice": "a"}}, "audio"),
        ("llama", {"foo": 1}, "foo"),
        ("claude", {"temperature": 9}, "temperature"),
    ],
)
def test_what_a_kind_cannot_be_asked_is_refused_by_its_name(
    client: openai.OpenAI, model: str, fields: dict[str, Any], param: str
) -> None:
    import openai

    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=HELLO, extra_body=fields)
    assert caught.value.param == param, caught.value.message


@pytest.mark.parametrize(
    ("prompt", "status", "outcome"),
    [("wrong key", 502, "failed"), ("too fast", 429, "failed"), ("no such field", 400, "refused"),
     ("down", 502, "failed"), ("hang", 504, "failed")],
)  # fmt: skip
def test_a_failure_of_the_provider_has_a_fitting_status_and_leaks_nothing(
    client: openai.OpenAI, stack: Stack, servers: dict[str, Any], prompt: str, status: int, outcome: str
) -> None:
    import openai

    messages: list[Any] = [{"role": "user", "content": prompt}]
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="gpt@local", messages=messages)
    error = caught.value
    assert error.status_code == status
    assert KEY not in error.response.text
    assert str(servers["local"].port) not in error.response.text
    if prompt == "too fast":
        assert error.response.headers["retry-after"] == "2"
    if prompt == "no such field":
        assert error.code == "unknown_parameter"
    call = metered(stack, error.response.headers["x-request-id"])
    assert (call["outcome"], call["status"]) == (outcome, status)


def test_a_stream_that_breaks_off_raises(client: openai.OpenAI) -> None:
    import openai

    messages: list[Any] = [{"role": "user", "content": "broken"}]
    with pytest.raises(openai.APIError, match=r"cut an answer short|failed while answering"):
        list(client.chat.completions.create(model="gpt@local", messages=messages, stream=True))


def test_names_of_models_are_those_of_batches(client: openai.OpenAI) -> None:
    import openai

    with pytest.raises(openai.BadRequestError, match="Several endpoints have model") as caught:
        client.chat.completions.create(model="gpt", messages=HELLO)
    assert caught.value.param == "model"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="nowhere", messages=HELLO)
    listed = [model.id for model in client.models.list()]
    for name in listed:
        assert client.chat.completions.create(model=name, messages=HELLO).choices[0].message.content


def test_a_client_that_goes_away_ends_the_providers_call(
    client: openai.OpenAI, stack: Stack, servers: dict[str, Any]
) -> None:
    local = servers["local"]
    before, local.behaviour.piece_s = local.aborted, 0.5
    try:
        messages: list[Any] = [{"role": "user", "content": " ".join("word" for _ in range(100))}]
        made = client.chat.completions.with_raw_response.create(model="gpt@local", messages=messages, stream=True)
        stream = made.parse()
        next(iter(stream))
        stream.close()
        until(lambda: local.aborted > before, timeout_s=20)
    finally:
        local.behaviour.piece_s = 0.0
    assert metered(stack, made.headers["x-request-id"])["outcome"] == "cancelled"


def test_an_evaluator_that_is_killed_or_missing_is_named(stack: Stack, client: openai.OpenAI, servers: Any) -> None:
    import openai

    second = servers["second"]
    alone: list[Endpoint] = [{"name": "alone", "kind": "openai", "base_url": second.url, "models": ["gpt"]}]
    second.behaviour.latency_s = 30.0
    failed: list[openai.APIStatusError] = []

    def ask() -> None:
        try:
            client.chat.completions.create(model="gpt@alone", messages=HELLO)
        except openai.APIStatusError as error:
            failed.append(error)

    try:
        with stack.evaluator("alone", alone) as process:
            until(lambda: "gpt@alone" in [model.id for model in client.models.list()])
            asking = threading.Thread(target=ask)
            begun = second.in_flight
            asking.start()
            until(lambda: second.in_flight > begun)
            process.send_signal(signal.SIGKILL)
            started = time.monotonic()
            asking.join(30)
        assert time.monotonic() - started < 15
        assert failed[0].status_code == 503
        assert "does not answer any more" in failed[0].message
        with pytest.raises(openai.InternalServerError, match="No running evaluator serves endpoint alone"):
            client.chat.completions.create(model="gpt@alone", messages=HELLO)
    finally:
        second.behaviour.latency_s = 0.0


@pytest.fixture(scope="module")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("js") / "openai_js"
    shutil.copytree(JAVASCRIPT, work, ignore=shutil.ignore_patterns("node_modules"))
    subprocess.run(["npm", "ci", "--no-progress", "--loglevel=error"], cwd=work, check=True, timeout=120)
    return work


@pytest.mark.parametrize("model", KINDS[:4])
def test_the_javascript_client_calls_every_kind(stack: Stack, javascript: Path, model: str) -> None:
    command = ["node", "calls.mjs", f"{stack.url}/v1", model]
    ran = subprocess.run(command, cwd=javascript, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["chat"]["content"].endswith("HELLO THERE")
    assert (seen["chat"]["finish"], seen["chat"]["object"]) == ("stop", "chat.completion")
    assert seen["stream"] == {"content": seen["chat"]["content"], "counted": True}
    assert seen["response"] == {"text": seen["chat"]["content"], "status": "completed"}
    assert seen["events"] == {"deltas": "HELLO THERE", "text": "HELLO THERE"}
    assert seen["wrong"] == ["NotFoundError", 404]
    assert seen["tools"] == ["tool_calls", "stop", "weather", "completed"]
    assert seen["helper"] == [seen["chat"]["content"], True]
    assert seen["raw"]
    assert seen["aborted"]
    assert seen["refused"][:2] == ["BadRequestError", 400]
    assert seen["completions"][:2] == ["NotFoundError", 404]


def test_a_schema_is_parsed_and_helpers_work(client: openai.OpenAI) -> None:
    from pydantic import BaseModel

    class Loud(BaseModel):
        A: int

    parsed = client.chat.completions.parse(
        model="gpt@local", messages=[{"role": "user", "content": '{"A": 7}'}], response_format=Loud
    )
    assert parsed.choices[0].message.parsed == Loud(A=7)
    with client.chat.completions.stream(model="claude", messages=HELLO) as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_completion().choices[0].message.content == "HELLO THERE"
    assert {"chunk", "content.delta", "content.done"} <= kinds


PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501


@pytest.mark.parametrize("model", KINDS)
def test_a_request_with_usual_fields_in_any_order_is_answered(client: openai.OpenAI, model: str) -> None:
    picture: Any = {"type": "image_url", "image_url": {"url": PNG}}
    messages: list[Any] = [
        {"role": "developer", "content": "Be loud."},
        {"content": [{"text": "hello there", "type": "text"}, picture], "role": "user"},
    ]
    answer = client.chat.completions.create(
        messages=messages, metadata={"a": "b"}, store=True, user="u", max_tokens=50, stop=["#"], model=model, n=1
    )
    assert "HELLO THERE" in str(answer.choices[0].message.content)
    answer.choices[0].message.content = "Hi"
    again: list[Any] = [*HELLO, answer.choices[0].message, *HELLO]
    assert client.chat.completions.create(model=model, messages=again).choices[0].message.content


@pytest.mark.parametrize("model", KINDS)
def test_a_conversation_with_a_tool_goes_on_in_responses(client: openai.OpenAI, model: str) -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools: list[Any] = [{"type": "function", "name": "weather", "parameters": parameters, "strict": None}]
    asked: list[Any] = [{"role": "user", "content": "hello there"}]
    first = client.responses.create(
        model=model, input=asked, tools=tools, store=False, include=["reasoning.encrypted_content"],
        truncation="disabled", parallel_tool_calls=True, metadata={"a": "b"}, instructions="Be brief.",
    )  # fmt: skip
    (call,) = [item for item in first.output if item.type == "function_call"]
    asked += first.output
    asked.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    assert client.responses.create(model=model, input=asked, tools=tools).status == "completed"


def test_what_needs_kept_responses_is_refused(client: openai.OpenAI) -> None:
    import openai

    for fields in ({"previous_response_id": "resp_1"}, {"background": True}, {"conversation": "conv_1"}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model="claude", input="hello", **fields)
        assert caught.value.param == next(iter(fields))
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError, match="/v1/chat/completions"):
        client.completions.create(model="gpt@local", prompt="a")
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="gpt@local", input="a")


def test_raw_and_streamed_http_answers_and_timeouts_work(client: openai.OpenAI, stack: Stack) -> None:
    import openai

    raw = client.chat.completions.with_raw_response.create(model="claude", messages=HELLO)
    assert raw.status_code == 200
    assert raw.parse()._request_id == raw.headers["x-request-id"]
    with client.responses.with_streaming_response.create(model="claude", input="hello there") as streamed:
        assert json.loads(b"".join(streamed.iter_bytes()))["object"] == "response"
    hang: list[Any] = [{"role": "user", "content": "hang"}]
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=1, max_retries=0).chat.completions.create(model="claude", messages=hang)
    until(lambda: any(call["status"] == 499 for call in stack.get("/calls", model="claude", limit=3)["calls"]))


def test_the_client_tries_again_after_a_rate_limit(client: openai.OpenAI, servers: dict[str, Any]) -> None:
    servers["second"].behaviour.faults.append(Fault("429", retry_after="1", message="Slow down."))
    answer = client.with_options(max_retries=2).chat.completions.create(model="gpt@second", messages=HELLO)
    assert answer.choices[0].message.content == "HELLO THERE"


def test_usage_sums_the_calls(client: openai.OpenAI, stack: Stack) -> None:
    answer = client.chat.completions.create(model="other", messages=HELLO)
    metered(stack, str(answer._request_id))
    usage = stack.get("/usage", days=1)["usage"]
    (one,) = [one for one in usage if (one["endpoint"], one["model"]) == ("local", "other")]
    calls = stack.get("/calls", endpoint="local", model="other")["calls"]
    assert one["calls"] == len(calls)
    assert one["input_tokens"] == sum(call["input_tokens"] or 0 for call in calls)
    assert one["cost_usd"] == pytest.approx(sum(call["cost_usd"] or 0 for call in calls))
