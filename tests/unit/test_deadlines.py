"""Every call that leaves a service has a deadline: of gRPC, of HTTP and of NATS."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.unit.test_structure import ROOT, SERVICES, SHARED

HTTP = {
    *("httpx.AsyncClient", "httpx.Client", "httpx.get", "httpx.post", "httpx.request", "httpx.stream"),
    *("aiohttp.ClientSession", "aiohttp.request", "urllib.request.urlopen", "socket.create_connection"),
}
"""What calls over HTTP or makes a client, whose timeout all of its calls have unless they say otherwise."""
NATS = {"next_msg": 0, "request": 2}
"""Methods of NATS's client that wait for an answer, with the place of their timeout. Those of its JetStream context
wait for five seconds by default."""
READERS_PACE = {("services/gateway/backend.py", "stream")}
"""Streams that last as long as somebody reads them. If the other side is gone, gRPC's pings find out."""


def faults(path: str, tree: ast.AST, stubs: Iterable[str]) -> Iterator[str]:
    """Calls without a deadline. `stubs` are names of stubs and of their methods in this service."""
    for function, call in _calls(tree):
        name = ast.unparse(call.func)
        owner, _, method = name.rpartition(".")
        last = owner.rpartition(".")[2]
        if (last in stubs and method[:1].isupper()) or name in stubs:
            missing = _timeout(call) is None and (path, function) not in READERS_PACE
        elif name in HTTP:
            missing = _timeout(call) is None
        elif method in NATS and (last.endswith("client") or method == "next_msg"):
            missing = _timeout(call, NATS[method]) is None
        else:
            # Nobody may switch a default off.
            missing = any(one.arg == "timeout" and _is_none(one.value) for one in call.keywords)
        if missing:
            yield f"{path}:{call.lineno}: {name} has no deadline"


def _calls(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """With the name of the function that they are in."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.Call):
            yield function, node
        yield from _calls(node, inside)


def _timeout(call: ast.Call, place: int | None = None) -> ast.expr | None:
    given = [one.value for one in call.keywords if one.arg == "timeout"]
    if place is not None:
        given += call.args[place : place + 1]
    return given[0] if given and not _is_none(given[0]) else None


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def stubs(trees: Iterable[ast.AST]) -> set[str]:
    """Names that are assigned a stub of gRPC, and parameters that are one of its methods."""
    found = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if ast.unparse(node.value.func).endswith("Stub"):
                found |= {ast.unparse(target).rpartition(".")[2] for target in node.targets}
        elif isinstance(node, ast.arg) and node.annotation and "MultiCallable" in ast.unparse(node.annotation):
            found.add(node.arg)
    return found


def trees(folder: str) -> dict[str, ast.AST]:
    place = ROOT / "services" / folder
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in files}


@pytest.mark.parametrize("folder", [*SERVICES, *SHARED])
def test_a_call_that_leaves_a_service_has_a_deadline(folder: str) -> None:
    read = trees(folder)
    known = stubs(read.values())

    assert [fault for path, tree in read.items() for fault in faults(path, tree, known)] == []


def test_calls_are_found() -> None:
    """Otherwise the test above would look at nothing."""
    gateway, scheduler = (trees(folder) for folder in ("gateway", "scheduler"))

    assert stubs(gateway.values()) == {"stub", "scheduler", "results", "datasets", "method"}
    assert stubs(scheduler.values()) == {"_stub", "_internal"}
    backend = gateway["services/gateway/backend.py"]
    (streamed,) = faults("elsewhere.py", backend, stubs([backend]))
    assert streamed.endswith("method has no deadline")


@pytest.mark.parametrize(
    "call",
    [
        "self._stub.GetJob(request, metadata=self._metadata)",
        "self._stub.GetJob(request, timeout=None)",
        "httpx.AsyncClient(trust_env=False)",
        "aiohttp.ClientSession(trust_env=False)",
        "urllib.request.urlopen(url)",
        "self._http.get(path, timeout=None)",
        "bus.client.request(subject, data)",
        "client.request(subject, data, None)",
        "subscription.next_msg()",
        "connection.js.publish(subject, data, timeout=None)",
    ],
)
def test_a_call_without_a_deadline_is_found(call: str) -> None:
    assert len(list(faults("module.py", ast.parse(f"async def ask():\n    await {call}"), {"_stub"}))) == 1


@pytest.mark.parametrize(
    "call",
    [
        "self._stub.GetJob(request, timeout=_ASK_S)",
        "httpx.AsyncClient(timeout=5)",
        "bus.client.request(subject, data, timeout=_ANSWER_S)",
        "client.request(subject, data, 5)",
        "subscription.next_msg(timeout=_IDLE_S)",
        "connection.js.publish(subject, data)",
        "self._internal.SealJob(request, context)",
    ],
)
def test_a_call_with_a_deadline_passes(call: str) -> None:
    assert list(faults("module.py", ast.parse(f"async def ask():\n    await {call}"), {"_stub"})) == []
