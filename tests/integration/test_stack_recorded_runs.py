"""Calls through OpenAI's own client that are recorded, and the jobs that closing their run makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.anthropic_server import AnthropicServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Stack, running, until
from tests.stub_thread import stub_thread
from touchstone_client.client import Client
from touchstone_client.settings import Settings

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.stack

HEADER = "X-Touchstone-Run"
SYSTEM = {"role": "system", "content": "Answer in capitals."}


def upper(prompt: str) -> str | Fault:
    question = prompt.rpartition("\n\n")[2]
    faults = {"refuse": Fault("400", message="No."), "hold": Fault("hang")}
    return faults.get(question, question.upper())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with stub_thread() as stubs:
        local = stubs.start(OpenAIServer(Behaviour(models=("gpt",), answer=upper)))
        claude = stubs.start(AnthropicServer(Behaviour(models=("claude",), answer=upper)))
        endpoints: list[dict[str, Any]] = [
            {"name": "local", "kind": "openai", "base_url": local.url, "prices": {"input": 1.0, "output": 2.0}},
            {"name": "claude", "kind": "anthropic", "base_url": claude.url},
        ]
        os.environ["RECORDED_KEY"] = "key"
        for one in endpoints:
            one["api_key_env"] = "RECORDED_KEY"
        with running(Stack(tmp_path_factory.mktemp("recorded"), endpoints), request) as started:
            started.know_models("local", "claude")
            yield started


@pytest.fixture
def client(stack: Stack) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key="none-is-needed", max_retries=0) as made:
        yield made


def ask(client: openai.OpenAI, run: str, text: str, **fields: Any) -> str:
    messages: list[Any] = [SYSTEM, {"role": "user", "content": text}]
    given: dict[str, Any] = {"model": "gpt"} | fields
    answer = client.chat.completions.create(messages=messages, extra_headers={HEADER: run}, **given)
    return str(answer.choices[0].message.content)


def runs(stack: Stack) -> dict[str, dict[str, Any]]:
    with stack.client() as http:
        return {one["name"]: one for one in http.get(f"{stack.url}/api/v1/benchmarking/recorded-runs").json()["runs"]}


def closed(stack: Stack, run: str) -> dict[str, Any]:
    with stack.client() as http:
        answer = http.post(f"{stack.url}/api/v1/benchmarking/recorded-runs/{run}/close", timeout=60)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def items(stack: Stack, job_id: str) -> list[dict[str, Any]]:
    stack.wait(job_id)
    with stack.client() as http:
        answer = http.get(f"/results/{job_id}/export", params={"kind": "items", "format": "json"})
        assert answer.status_code == 200, answer.text
        return list(answer.json())


def test_a_run_becomes_jobs_that_have_every_call(client: openai.OpenAI, stack: Stack) -> None:
    import openai

    texts = [ask(client, "support", text, max_tokens=40) for text in ("hello", "again", "again")]
    assert texts == ["HELLO", "AGAIN", "AGAIN"]
    with pytest.raises(openai.BadRequestError):
        ask(client, "support", "refuse")
    assert ask(client, "support", "hello", model="claude", max_tokens=40) == "HELLO"
    streamed = client.responses.create(
        model="gpt", input="by responses", stream=True, extra_headers={HEADER: "support"}
    )
    assert [event.type for event in streamed][-1] == "response.completed"

    until(lambda: runs(stack)["support"]["calls"] == 6)
    assert runs(stack)["support"]["models"] == ["claude@claude", "gpt@local"]
    done = closed(stack, "support")
    assert (done["calls"], done["failed"], done["unfinished"]) == (6, 1, 0)
    assert "support" not in runs(stack)
    of_claude, of_gpt = done["job_ids"]

    rows = items(stack, of_gpt)
    assert [row["response"] for row in rows] == ["HELLO", "AGAIN", "AGAIN", "", "BY RESPONSES"]
    assert [row["outcome"] for row in rows][3] == "infrastructure_error"
    assert "No" in rows[3]["error"]
    assert len({row["custom_id"] for row in rows}) == 5
    first = rows[0]
    assert first["finish_reason"] == "stop"
    assert first["input_tokens"] > 0
    assert first["cost_usd"] == pytest.approx((first["input_tokens"] + 2 * first["output_tokens"]) / 1e6)
    assert "Answer in capitals." in first["prompt"]
    result = stack.get(f"/results/{of_gpt}")
    assert result["status"] == "completed"
    assert result["incomplete"]
    assert [row["response"] for row in items(stack, of_claude)] == ["HELLO"]

    assert closed(stack, "support")["job_ids"] == done["job_ids"]
    assert ask(client, "support", "later") == "LATER"
    until(lambda: "support" in runs(stack))
    again = closed(stack, "support")
    assert again["run_id"] != done["run_id"]
    assert [row["response"] for row in items(stack, again["job_ids"][0])] == ["LATER"]
    # Its texts are with its job alone.
    until(lambda: stack.get("/set-aside")["messages"] == [])


def test_a_wrong_name_and_what_cannot_be_recorded_are_refused(client: openai.OpenAI, stack: Stack) -> None:
    import openai

    with pytest.raises(openai.BadRequestError, match="letters, digits") as caught:
        ask(client, "no such/name", "hello")
    assert caught.value.param == HEADER
    with pytest.raises(openai.BadRequestError, match="cannot be recorded"):
        ask(client, "wrong", "hello", n=2)
    assert "wrong" not in runs(stack)
    with stack.client() as http:
        assert http.post(f"{stack.url}/api/v1/benchmarking/recorded-runs/wrong/close").status_code == 404


def test_a_deleted_run_leaves_nothing(client: openai.OpenAI, stack: Stack) -> None:
    ask(client, "secret", "forget me")
    with stack.client() as http:
        assert http.delete(f"{stack.url}/api/v1/benchmarking/recorded-runs/secret").json()["deleted"] is True
        assert http.delete(f"{stack.url}/api/v1/benchmarking/recorded-runs/secret").status_code == 404
        assert http.post(f"{stack.url}/api/v1/benchmarking/recorded-runs/secret/close").status_code == 404


def test_a_budget_holds_over_calls_at_once_and_a_kill(client: openai.OpenAI, stack: Stack) -> None:
    import openai

    def call(text: str, budget: str = "0.02", **fields: Any) -> str:
        """The answer, or the code of the refusal; empty for a lost call."""
        headers = {HEADER: "bounded", "X-Touchstone-Budget-USD": budget}
        given: dict[str, Any] = {"model": "gpt", "max_completion_tokens": 2000} | fields
        messages: list[Any] = [{"role": "user", "content": text}]
        try:
            answer = client.chat.completions.create(messages=messages, extra_headers=headers, **given)
        except openai.APIStatusError as error:
            return f"{error.status_code} {error.code} {error.param}"
        except openai.APIConnectionError:
            return ""
        return str(answer.choices[0].message.content)

    assert call("first") == "FIRST"
    assert call("x", max_completion_tokens=None) == "400 None max_completion_tokens"
    assert call("x", model="claude") == "400 None X-Touchstone-Budget-USD"
    # Each of these reserves more than $0.004 and less than $0.005.
    with ThreadPoolExecutor(12) as pool:
        held = [pool.submit(call, "hold") for _ in range(12)]
        until(lambda: sum(one.done() for one in held) == 8)
        stack.kill("evaluator")
        answers = [one.result() for one in held]
    refused = "402 budget_exceeded X-Touchstone-Budget-USD"
    assert answers.count(refused) == 8
    until(lambda: call("later") == refused)
    run = runs(stack)["bounded"]
    assert 0.016 < run["cost_usd"] <= 0.02
    assert (run["calls"], run["unfinished"]) == (1, 4)
    assert call("later", budget="1") == "LATER"
    # Only answered calls become items.
    done = closed(stack, "bounded")
    assert (done["calls"], [row["response"] for row in items(stack, done["job_ids"][0])]) == (2, ["FIRST", "LATER"])


def test_kills_between_calls_neither_lose_nor_double_one(client: openai.OpenAI, stack: Stack) -> None:
    import openai

    def answered(text: str) -> bool:
        try:
            return ask(client, "killed", text) == text.upper()
        except (openai.InternalServerError, openai.APIConnectionError):  # What was killed is not back yet.
            return False

    asked = [f"question {number}" for number in range(6)]
    for text, service in zip(asked, ("results", "evaluator", "gateway", "nats", "", ""), strict=True):
        until(partial(answered, text))
        if service:
            stack.kill(service)
    settings = Settings(scheduler=f"127.0.0.1:{stack.scheduler_port}", results=f"127.0.0.1:{stack.results_port}")
    with Client(settings) as touchstone:
        until(lambda: "killed" in [run.name for run in touchstone.recorded_runs()])
        (job,) = touchstone.close_recorded_run("killed")
        assert [one.job_id for one in touchstone.close_recorded_run("killed")] == [job.job_id]
    assert [row["response"] for row in items(stack, job.job_id)] == [text.upper() for text in asked]
