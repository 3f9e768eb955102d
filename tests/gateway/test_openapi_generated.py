"""A client that a generator makes from the OpenAPI document makes every call."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
import subprocess
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from services.gateway.api import routes as api
from services.gateway.api.declare.endpoint import Endpoint
from tests.gateway import conformance
from tests.gateway.gateway_server import Running
from tests.unit.test_api_guide import Example, examples

PACKAGE = "generated_touchstone"
CALLS = ("/v1/chat/completions", "/v1/responses")
STREAMED = {"watchResults"}
"""Event streams, which end with their job: the generated client reads an answer whole."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a package with a module for each operation."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(conformance.document()))
    (folder / "config.yaml").write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    command += ["--config", "config.yaml", "--output-path", PACKAGE]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def module(package: str, endpoint: Endpoint) -> Any:
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", endpoint.name).lower()
    return importlib.import_module(f"{package}.api.default.{snake}")


def converted(value: str, annotation: Any) -> Any:
    """A query parameter's text as the kind of value that the generated function takes."""
    for kind in kinds(annotation):
        if inspect.isclass(kind) and issubclass(kind, enum.Enum):
            return kind(value)
        if kind in (int, float, bool):
            return json.loads(value)
    return value


def arguments(call: Any, example: Example) -> dict[str, Any]:
    route = example.endpoint.route
    pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route)
    matched = re.fullmatch(pattern, example.path)
    assert matched
    given = matched.groupdict() | dict(example.given)
    parameters = inspect.signature(call).parameters
    # Generated names avoid those of Python itself.
    named = {name if name in parameters else f"{name}_": value for name, value in given.items()}
    made = {name: converted(value, parameters[name].annotation) for name, value in named.items()}
    if "body" in parameters and example.body:
        body = next(kind for kind in kinds(parameters["body"].annotation) if hasattr(kind, "from_dict"))
        made["body"] = body.from_dict(json.loads(example.body))
    return made


def kinds(annotation: Any) -> tuple[Any, ...]:
    return typing.get_args(annotation) or (annotation,)


def test_the_document_is_valid() -> None:
    validate(conformance.document())


def test_every_operation_is_generated(generated: str) -> None:
    assert len(api.ALL) > 50
    for endpoint in api.DOCUMENTED:
        assert callable(module(generated, endpoint).asyncio_detailed)


async def test_every_call_of_the_guide_is_made_and_its_answer_read(gateway: Running, generated: str) -> None:
    ends: Counter[int] = Counter()
    for example in examples():
        if example.endpoint.name in STREAMED or example.endpoint.reads:
            continue
        call = module(generated, example.endpoint).asyncio_detailed
        client = importlib.import_module(generated).Client(base_url=gateway.url, timeout=httpx.Timeout(30))
        answer = await call(client=client, **arguments(call, example))
        assert answer.parsed is not None, f"{example.endpoint.name}: {answer.status_code} {answer.content[:300]!r}"
        # The gateway of these tests has no NATS, by which models are called.
        assert answer.status_code in (200, 400, 404, 409, 501) or example.path in CALLS, (
            f"{example.endpoint.name}: {answer.content[:300]!r}"
        )
        ends[answer.status_code] += 1
    assert ends[200] > len(api.ALL) / 3, ends
