"""Everything that users of an installation call or set, one line each: `python -m tests.surface` prints it."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor
from starlette.routing import Route

import touchstone_client
from deploy import command
from services.gateway.api import routes as rest
from services.gateway.api.declare.endpoint import Endpoint
from services.gateway.pages import routes as pages
from touchstone.v1 import dataset_service_pb2, results_service_pb2, scheduler_service_pb2

ROOT = Path(__file__).parents[1]
SERVICES: tuple[FileDescriptor, ...] = (
    dataset_service_pb2.DESCRIPTOR,
    results_service_pb2.DESCRIPTOR,
    scheduler_service_pb2.DESCRIPTOR,
)


def surface() -> list[str]:
    """Every line, sorted."""
    endpoints = rest.DOCUMENTED
    return sorted({*_rest(endpoints), *_pages(), *_rpcs(), *_commands(command.parser()), *_python(), *_settings()})


def _rest(endpoints: tuple[Endpoint, ...]) -> Iterator[str]:
    for endpoint in endpoints:
        operation = f"rest {endpoint.method} {endpoint.route} {endpoint.name}"
        yield operation
        yield from (f"{operation} ?{parameter.name}" for parameter in endpoint.query)
        if endpoint.body is not None:
            yield from (f"{operation} body.{name}" for name in endpoint.body.schema.get("properties", ()))


def _pages() -> Iterator[str]:
    for route in pages.routes:
        assert isinstance(route, Route)
        yield from (f"page {method} {route.path}" for method in route.methods or ())


def _rpcs() -> Iterator[str]:
    for file in SERVICES:
        for service in file.services_by_name.values():
            yield from (f"rpc {service.full_name}/{method.name}" for method in service.methods)


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Verbs with their flags and arguments, below each other as the command line has them."""
    yield f"command {parser.prog}"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _commands(verb)
        else:
            names = action.option_strings or [f"<{action.dest}>"]
            yield from (f"command {parser.prog} {name}" for name in names)


def _python() -> Iterator[str]:
    """What the client's package exports, the public methods of its classes, and what these and its functions take."""
    for name in touchstone_client.__all__:
        exported = getattr(touchstone_client, name)
        yield f"python {name}"
        if inspect.isfunction(exported):
            yield from (f"python {name} {parameter}" for parameter in _parameters(exported))
        elif inspect.isclass(exported) and exported.__module__.startswith(touchstone_client.__name__):
            yield from (f"python {name} {parameter}" for parameter in _parameters(exported))
            for member, method in inspect.getmembers(exported, inspect.isfunction):
                if not member.startswith("_"):
                    _, *parameters = _parameters(method)
                    yield f"python {name}.{member}"
                    yield from (f"python {name}.{member} {parameter}" for parameter in parameters)


def _parameters(callable_: Callable[..., object]) -> Iterator[str]:
    """The names of its parameters; in place of `**options` those that its `TypedDict` has."""
    for name, parameter in inspect.signature(callable_).parameters.items():
        unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if unpacked is None:
            yield name
        else:
            yield from inspect.unwrap(callable_).__globals__[unpacked[1]].__annotations__


def _settings() -> Iterator[str]:
    sources = (path for folder in ("services", "client", "deploy") for path in (ROOT / folder).rglob("*.py"))
    for path in sources:
        yield from (f"setting {name}" for name in re.findall(r"\bTOUCHSTONE_[A-Z0-9_]*[A-Z]\b", path.read_text()))


if __name__ == "__main__":
    print(*surface(), sep="\n")
