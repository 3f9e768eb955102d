"""OpenAI's own clients against an installation: files and batches, as its documentation uses them.

Python's clients are imported where they are used: each worker of pytest-xdist imports this file, and they take long.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread

if TYPE_CHECKING:
    import openai
    from openai.types import Batch

pytestmark = pytest.mark.stack

MODEL = "small"
JAVASCRIPT = Path(__file__).parent / "openai_js"
REFUSED = "row-7"
"""The stub refuses this row for good."""


def line(custom_id: str, prompt: str, **body: Any) -> dict[str, Any]:
    message = {"role": "user", "content": prompt}
    body = {"model": MODEL, "messages": [message], "max_tokens": 20} | body
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def jsonl(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


def upper(prompt: str) -> str | Fault:
    return Fault("400", message="This prompt is not allowed.") if prompt == REFUSED else prompt.upper()


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with stub_thread() as stubs:
        yield stubs.start(OpenAIServer(Behaviour(models=(MODEL, "other"), answer=upper)))


@pytest.fixture(scope="module")
def second() -> Iterator[OpenAIServer]:
    """Another endpoint, which has a model that the first one has, too."""
    with stub_thread() as stubs:
        yield stubs.start(OpenAIServer(Behaviour(models=("org/third", "other"), answer=upper)))


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory,
    provider: OpenAIServer,
    second: OpenAIServer,
    request: pytest.FixtureRequest,
) -> Iterator[Stack]:
    endpoints: list[Endpoint] = [
        {"name": name, "kind": "openai", "base_url": server.url, "concurrency": 8}
        for name, server in (("local", provider), ("second", second))
    ]
    with running(Stack(tmp_path_factory.mktemp("openai"), endpoints), request) as started:
        started.know_models("local", "second")
        yield started


@pytest.fixture
def client(stack: Stack) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=f"{stack.url}/v1", api_key="none-is-needed", max_retries=0) as made:
        yield made


def ended(client: openai.OpenAI, batch_id: str, timeout_s: float = 120) -> Batch:
    deadline = time.monotonic() + timeout_s
    while (batch := client.batches.retrieve(batch_id)).status not in ("completed", "failed", "cancelled"):
        assert time.monotonic() < deadline, batch
        time.sleep(0.05)
    return batch


def job_of(batch_id: str) -> str:
    return str(uuid.UUID(batch_id.removeprefix("batch_")))


def uploaded(client: openai.OpenAI, lines: list[dict[str, Any]], name: str = "batch.jsonl") -> str:
    return client.files.create(file=(name, jsonl(lines)), purpose="batch").id


def test_models_are_listed_by_the_names_that_lines_take(client: openai.OpenAI, stack: Stack) -> None:
    import openai

    listed = list(client.models.list())
    assert [(one.id, one.object, one.owned_by) for one in listed] == [
        ("other@local", "model", "local"),
        (MODEL, "model", "local"),
        ("org/third", "model", "second"),
        ("other@second", "model", "second"),
    ]
    for one in listed:
        assert client.models.retrieve(one.id) == one
    with pytest.raises(openai.NotFoundError, match="not found at any endpoint"):
        client.models.retrieve("other")
    file_id = uploaded(client, [line("a", "hello", model="other@second")])
    batch = client.batches.create(input_file_id=file_id, endpoint="/v1/chat/completions", completion_window="24h")
    assert ended(client, batch.id).status == "completed"


def test_a_batch_runs_as_the_clients_documentation_says(client: openai.OpenAI, tmp_path: Path) -> None:
    import openai

    source = tmp_path / "my batch.jsonl"
    source.write_bytes(jsonl([line(f"row-{n}", f"hello {n}") for n in range(150)]))
    file = client.files.create(file=source.open("rb"), purpose="batch")
    assert (file.filename, file.purpose, file.bytes) == ("my batch.jsonl", "batch", source.stat().st_size)
    batch = client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"description": "nightly", "team": "search"},
    )
    assert batch.status in ("validating", "in_progress")
    assert batch.metadata == {"description": "nightly", "team": "search"}
    batch = ended(client, batch.id)
    assert batch.status == "completed"
    assert batch.input_file_id == file.id
    assert batch.error_file_id is None
    assert batch.request_counts is not None
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (150, 150, 0)
    assert batch.usage is not None
    assert batch.usage.total_tokens == batch.usage.input_tokens + batch.usage.output_tokens > 0
    assert batch.output_file_id is not None
    lines = [json.loads(one) for one in client.files.content(batch.output_file_id).text.splitlines()]
    assert [one["custom_id"] for one in lines] == [f"row-{n}" for n in range(150)]
    for n, one in enumerate(lines):
        assert one["error"] is None
        assert one["response"]["status_code"] == 200
        completion = openai.types.chat.ChatCompletion.model_validate(one["response"]["body"])
        assert completion.choices[0].message.content == f"HELLO {n}"
        assert completion.usage is not None
        assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


def test_the_javascript_client_runs_a_batch(stack: Stack, tmp_path: Path) -> None:
    work = tmp_path / "openai_js"
    shutil.copytree(JAVASCRIPT, work, ignore=shutil.ignore_patterns("node_modules"))
    subprocess.run(["npm", "ci", "--no-progress", "--loglevel=error"], cwd=work, check=True, timeout=120)
    source = tmp_path / "js batch.jsonl"
    source.write_bytes(jsonl([line(f"js-{n}", f"hello {n}") for n in range(20)]))
    command = ["node", "batches.mjs", f"{stack.url}/v1", str(source)]
    ran = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "models": ["other@local", MODEL, "org/third", "other@second"],
        "file": {"filename": "js batch.jsonl", "purpose": "batch", "bytes": source.stat().st_size, "kept_s": 3600},
        "batch": {
            "status": "completed",
            "counts": {"total": 20, "completed": 20, "failed": 0},
            "metadata": {"team": "search"},
        },
        "answers": {f"js-{n}": f"HELLO {n}" for n in range(20)},
        "listed": True,
        "deleted": True,
        "missing": ["NotFoundError", 404],
    }


def test_rows_own_sampling_reaches_the_provider(client: openai.OpenAI, provider: OpenAIServer) -> None:
    marks = {f"mark {n} of sampling": n / 10 for n in range(5)}
    lines = [line(f"s-{n}", prompt, temperature=t, seed=n) for n, (prompt, t) in enumerate(marks.items())]
    file = uploaded(client, lines)
    batch = client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h")
    assert ended(client, batch.id).status == "completed"
    sent = {record.body["messages"][-1]["content"]: record.body for record in provider.records}
    assert {prompt: sent[prompt]["temperature"] for prompt in marks} == marks
    assert [sent[prompt]["seed"] for prompt in marks] == list(range(5))


def test_failed_requests_stand_in_the_error_file(client: openai.OpenAI) -> None:
    file = uploaded(client, [line(f"row-{n}", f"row-{n}") for n in range(100)])
    batch = client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h")
    batch = ended(client, batch.id)
    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert (batch.request_counts.completed, batch.request_counts.failed) == (99, 1)
    assert batch.error_file_id is not None
    assert batch.output_file_id is not None
    (failed,) = [json.loads(one) for one in client.files.content(batch.error_file_id).text.splitlines()]
    assert failed["custom_id"] == REFUSED
    assert failed["response"] is None
    assert "not allowed" in failed["error"]["message"]
    answered = [json.loads(one)["custom_id"] for one in client.files.content(batch.output_file_id).text.splitlines()]
    assert len(set(answered)) == 99
    assert REFUSED not in answered


def test_a_cancelled_batch_keeps_what_it_has(client: openai.OpenAI, provider: OpenAIServer, stack: Stack) -> None:
    provider.behaviour.latency_s, before = 0.2, provider.behaviour.latency_s
    try:
        file = uploaded(client, [line(f"c-{n}", f"cancelled {n}") for n in range(500)])
        batch = client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h")
        deadline = time.monotonic() + 60
        while not ((counts := client.batches.retrieve(batch.id).request_counts) and counts.completed):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.batches.cancel(batch.id)
        batch = ended(client, batch.id)
    finally:
        provider.behaviour.latency_s = before
    assert batch.status == "cancelled"
    assert batch.output_file_id is not None
    # What the scheduler has counted is stored a moment later.
    until(lambda: stack.settled(job_of(batch.id)))
    answered = [json.loads(one)["custom_id"] for one in client.files.content(batch.output_file_id).text.splitlines()]
    assert 0 < len(answered) < 500
    assert batch.error_file_id is not None
    not_run = [json.loads(one) for one in client.files.content(batch.error_file_id).text.splitlines()]
    assert {one["error"]["code"] for one in not_run} == {"batch_cancelled"}
    assert sorted(answered + [one["custom_id"] for one in not_run]) == sorted(f"c-{n}" for n in range(500))
    assert client.files.delete(file).deleted
    assert client.files.content(batch.error_file_id).text == ""


def test_lists_page_by_the_last_id(client: openai.OpenAI, stack: Stack) -> None:
    files = [uploaded(client, [line("a", f"page {n}")], f"page-{n}.jsonl") for n in range(3)]
    batches = [
        client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h").id
        for file in files
    ]
    for batch in batches:
        ended(client, batch)
        stack.heard(stack.job(job_of(batch)))
    listed = [batch.id for batch in client.batches.list(limit=2)]
    assert listed[:3] == batches[::-1]
    assert len(listed) == len(set(listed))
    assert [file.id for file in client.files.list(purpose="batch", limit=1)][:3] == files[::-1]
    made = [file.id for file in client.files.list(purpose="batch_output")]
    assert len(made) >= 3


def test_a_file_goes_only_once_nothing_runs_over_it(client: openai.OpenAI, provider: OpenAIServer) -> None:
    import openai

    provider.behaviour.latency_s, before = 0.2, provider.behaviour.latency_s
    try:
        file = uploaded(client, [line(f"d-{n}", f"kept {n}") for n in range(200)])
        batch = client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h")
        with pytest.raises(openai.ConflictError):
            client.files.delete(file)
        client.batches.cancel(batch.id)
        ended(client, batch.id)
    finally:
        provider.behaviour.latency_s = before
    assert client.files.delete(file).deleted
    with pytest.raises(openai.NotFoundError, match=f"No such File object: {file}"):
        client.files.retrieve(file)
    assert client.batches.retrieve(batch.id).input_file_id == file


def test_an_uploaded_file_is_given_back_as_lines_that_make_the_same_file(client: openai.OpenAI) -> None:
    asked = {"temperature": 0.5, "seed": 7, "stop": ["\n"], "verbosity": "low", "min_p": 1.0}
    lines = [line(f"b-{n}", f"Größe {n}? " * 400, **asked) for n in range(1200)]
    lines[3] |= {"reference": ["a", "b"], "metadata": {"name": "Ada", "depth": {"of": [1, 2.5, None]}}}
    file = uploaded(client, lines)
    given = client.files.content(file).read()
    assert [json.loads(one) for one in given.splitlines()] == lines
    again = client.files.create(file=("again.jsonl", given), purpose="batch").id
    assert client.files.content(again).read() == given


def test_wrong_lines_are_named(client: openai.OpenAI) -> None:
    import openai

    lines = [line("a", "fine"), line("a", "the id again"), line("c", "fine", n=3)]
    with pytest.raises(openai.BadRequestError) as refused:
        uploaded(client, lines)
    assert str(refused.value).count("Line 2") == 1
    assert "Line 3" in str(refused.value)


def test_a_model_that_nobody_serves_is_not_found(client: openai.OpenAI) -> None:
    import openai

    file = uploaded(client, [line("a", "hello", model="nobody-has-it")])
    with pytest.raises(openai.NotFoundError):
        client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h")


def test_lines_of_two_models_are_refused_with_what_to_do(client: openai.OpenAI) -> None:
    import openai

    file = uploaded(client, [line("a", "hello"), line("b", "hello", model="other")])
    with pytest.raises(openai.BadRequestError, match="name one model"):
        client.batches.create(input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h")
    batch = client.batches.create(
        input_file_id=file,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        extra_body={"model": "other@local", "priority": "low"},
    )
    assert batch.model == "other"
    assert ended(client, batch.id).status == "completed"
