"""The two backends of the contract suite, each started once, and what every test may ask about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.backends import Backend, Fakes, Installation, fakes
from tests.contract.things import MODEL, Things, Twin, made
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Stack, running
from tests.stub_thread import stub_thread

SILENT_S = 3600
"""How long the models of the endpoint vllm-a take to answer, so that their jobs run until they are cancelled."""


@pytest.fixture(scope="session", params=["fakes", pytest.param("stack", marks=pytest.mark.stack)])
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    if request.param == "fakes":
        with fakes() as started:
            yield started
        return
    with stub_thread() as thread:
        silent = thread.start(OpenAIServer(Behaviour(latency_s=SILENT_S, models=("llama3.3:70b", "qwen2.5:32b"))))
        model = thread.start(OpenAIServer(Behaviour(models=(MODEL["model"],))))
        stack = Stack(
            tmp_path_factory.mktemp("contract"),
            [
                {"name": "baselines", "kind": "baseline", "concurrency": 4},
                {"name": "vllm-a", "kind": "openai", "base_url": silent.url, "concurrency": 2},
                {"name": MODEL["provider"], "kind": "openai", "base_url": model.url, "concurrency": 8},
            ],
            tmp_path_factory.mktemp("nothing"),
            environment={"HF_HUB_OFFLINE": "1"},
        )
        with running(stack, request) as started_stack:
            started_stack.know_models("baselines", "vllm-a", MODEL["provider"])
            installation = Installation(started_stack)
            yield installation
            installation.close()


@pytest.fixture(scope="session")
def things(backend: Backend) -> Things:
    return made(backend)


@pytest.fixture(scope="session")
def twin(backend: Backend) -> Iterator[Twin]:
    """The fakes with things of their own, for tests of an installation that compare sentences; None for the fakes."""
    if isinstance(backend, Fakes):
        yield None
        return
    with fakes() as started:
        yield started, made(started)
