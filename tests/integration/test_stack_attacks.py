"""Hostile requests over raw sockets: none is answered by 500, hangs, stops a service or leaves a traceback.

The cases are chosen by a seed, which the failure prints; TOUCHSTONE_ATTACK_SEED repeats one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
import pytest

from benchmarks import processes
from tests.stack import API, Stack
from touchstone.v1 import dataset_service_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

SEED = int(os.environ.get("TOUCHSTONE_ATTACK_SEED", "20261122"))
WAIT_S = 90.0
_LINE = b"POST /api/v1/benchmarking/run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
_CHUNKED = _LINE + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
_TEXTS = (
    "%00", "%FF%FE", "%2e%2e%2f", "%ED%A0%80", "a" * 5000, "%0d%0aX:%20y", "%F0%9F%98%80", "NaN", "1e999", "-1",
    "9" * 400, "%27%3B--", "%25", "*", "{}", "null", "%E2%80%AE", "0x10", "1_000", "%D9%A3", "%C2%B2",
)  # fmt: skip
_BODIES = (
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a":' * 5000, b"[" * 100_000, b'{"project_id":1e400}', b'{"suite":NaN}',
    b'{"a":1,"a":2}', b'{"suite":"\\ud800","config":{"provider":"\\u0000","model":"\\udfff"}}',
    json.dumps({"project_id": 10**400}).encode(), json.dumps({"config": {"x": {}}, "job_ids": [None]}).encode(),
)  # fmt: skip


def _get(headers: bytes, path: bytes = b"/jobs") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + b"\r\n"


HEADERS: Mapping[str, bytes] = {
    "giant cookie": _get(b"Cookie: a=" + b"x" * 100_000 + b"\r\n"),
    "junk cookie": _get(b'Cookie: ;;;=;"\\\xff\xfe=a;touchstone=\x80\r\n'),
    "many headers": _get(b"".join(b"X-%d: a\r\n" % n for n in range(1000))),
    "length and chunks": _LINE
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "two lengths": _LINE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456",
    "negative length": _LINE + b"Content-Length: -5\r\n\r\n",
    "huge length": _LINE + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "bad chunk": _CHUNKED + b"\r\nzz\r\n",
    "long chunk extension": _CHUNKED + b"\r\n1;" + b"a" * 60_000 + b"\r\nx\r\n0\r\n\r\n",
    "tiny chunks": _CHUNKED + b"\r\n" + b"1\r\n{\r\n" * 50_000 + b"0\r\n\r\n",
    "many trailers": _CHUNKED + b"\r\n0\r\n" + b"A: b\r\n" * 3000 + b"\r\n",
    "other coding": _LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "folded header": _get(b"X-A: a\r\n b\r\n"),
    "NUL in a header": _get(b"X-A: a\x00b\r\n"),
    "two hosts": _get(b"Host: evil\r\n"),
    "no version": b"GET /jobs\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "another site": _get(b"", b"http://evil.example/jobs"),
    "star": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "connect": b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "ranges": _get(b"Range: bytes=" + b"0-1," * 3000 + b"2-3\r\n", b"/static/app.css"),
    "date": _get(b"If-Modified-Since: \xff\r\n", b"/static/app.css"),
    "accepts": _get(b"Accept: " + b"a/b;q=0.1," * 1400 + b"\r\n"),
    "junk token": _get(b"Authorization: Bearer \xff\xfe\r\nX-API-Key: \xff\r\n"),
    "forwarded": _get(b"X-Forwarded-For: " + b"1.1.1.1," * 1500 + b"\r\nX-Forwarded-Proto: \xff\r\n"),
    "htmx": _get(b"HX-Request: \xff\r\nHX-Current-URL: \xff\r\n"),
    "boundary": _LINE.replace(b"/api/v1/benchmarking/run", b"/admin/datasets/upload")
    + b"Content-Type: multipart/form-data; boundary="
    + b"\xff" * 3000
    + b"\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    started = Stack(tmp_path_factory.mktemp("attacks"), []).start()
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def job(stack: Stack) -> str:
    made = stack.run("baseline", "majority", "demo")
    stack.completed(made)
    return made


@pytest.fixture(autouse=True)
def unharmed(stack: Stack, job: str) -> Iterator[None]:
    """The same processes live, answer, and have logged no traceback."""
    before = processes.pids(stack.state_dir)
    yield
    assert processes.pids(stack.state_dir) == before, stack.tails()
    assert stack.get(f"/results/{job}")["status"] == "completed"
    for log in (stack.state_dir / "logs").glob("*.log"):
        text = log.read_text(errors="replace")
        assert "Traceback" not in text, f"{log.name}, seed {SEED}: {text[text.index('Traceback') :][:3000]}"


def _sent(stack: Stack, data: bytes) -> bytes:
    """The answer to raw bytes. Raises AssertionError when the server neither answers nor closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=WAIT_S) as wire:
        with contextlib.suppress(OSError):  # refused before it was read; the answer may be there
            wire.sendall(data)
        try:
            while piece := wire.recv(65536):
                received += piece
        except TimeoutError as error:
            raise AssertionError(f"no answer to {data[:200]!r}, seed {SEED}") from error
        except OSError:
            pass
    return received


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers_and_bodies(stack: Stack, name: str) -> None:
    answer = _sent(stack, HEADERS[name])
    assert not answer or re.match(rb"HTTP/1\.1 [1-4]\d\d ", answer), answer[:500]


def test_hostile_paths_parameters_methods_and_bodies(stack: Stack) -> None:
    rng = random.Random(SEED)
    document = stack.get("/openapi.json")
    pages = ("/", "/jobs", "/leaderboard", "/history", "/compare", "/run", "/datasets", "/login", "/jobs/{id}")
    known: list[tuple[str, str, Sequence[str]]] = [("get", page, ("suite", "days", "a", "b", "q")) for page in pages]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method in ("get", "post", "put", "delete"):
                known.append((method, path, [p["name"] for p in operation.get("parameters", []) if p.get("in")]))
    for method, template, names in known:
        for _ in range(4):
            path = re.sub(r"{\w+}", lambda _: rng.choice(_TEXTS), template)
            query = "&".join(f"{name}={rng.choice(_TEXTS)}" for name in names if rng.random() < 0.5)
            verb = rng.choice([method.upper()] * 3 + ["HEAD", "OPTIONS", "TRACE", "PATCH", "FOO"])
            body = rng.choice(_BODIES) if verb in ("POST", "PUT", "PATCH") else b""
            head = f"{verb} {path}?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            answer = _sent(stack, head.encode() + length.encode() + body)
            told = f"{verb} {path[:200]}?{query[:300]} {body[:100]!r}, seed {SEED}: {answer[:300]!r}"
            assert re.match(rb"HTTP/1\.1 (2\d\d|3\d\d|4\d\d|501) ", answer), told


def test_streams_and_readers_that_do_not_read_hold_nobody_up(stack: Stack, job: str) -> None:
    request = "GET {}/results/{}/{} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    wires = []
    try:
        for path in ("events", "export?kind=items", "items?limit=500") * 30:
            wire = socket.create_connection(("127.0.0.1", stack.port), timeout=WAIT_S)
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.sendall(request.format(API, job, path).encode())
            wires.append(wire)
        time.sleep(1)
        for path in ("/leaderboard?suite=demo", "/overview", f"/results/{job}"):
            assert _sent(stack, _get(b"", (API + path).encode())).startswith(b"HTTP/1.1 200 ")
    finally:
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("service", ["SchedulerService", "ResultsService", "DatasetService"])
def test_hostile_messages(stack: Stack, service: str) -> None:
    modules: Mapping[str, Any] = {
        "SchedulerService": scheduler_service_pb2,
        "ResultsService": results_service_pb2,
        "DatasetService": dataset_service_pb2,
    }
    port = stack.scheduler_port if service == "SchedulerService" else stack.results_port
    million = b"\x0a\xc0\x84\x3d" + b"x" * 1_000_000
    junk = (b"\xff" * 50, b"\x0a\xff\xff\xff\x07x", million, b"x" * 5_000_000)
    options = [("grpc.max_send_message_length", -1), ("grpc.max_metadata_size", 10**6)]
    before = processes.resident_bytes(processes.pids(stack.state_dir)["results"])
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        for method in modules[service].DESCRIPTOR.services_by_name[service].methods:
            path = f"/touchstone.v1.{service}/{method.name}"
            for data in junk:
                for metadata in ((), tuple((f"x-{n}", "b" * 1000) for n in range(20))):
                    code = _called(channel, path, method, data, metadata)
                    assert code not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL), f"{path} {data[:20]!r}"
    after = processes.resident_bytes(processes.pids(stack.state_dir)["results"])
    assert after - before < 300_000_000, f"{before} bytes became {after}"


def _called(channel: Any, path: str, method: Any, data: bytes, metadata: Any) -> grpc.StatusCode:
    try:
        if method.client_streaming:
            channel.stream_unary(path)(iter([data, data]), timeout=WAIT_S, metadata=metadata)
        elif method.server_streaming:
            list(channel.unary_stream(path)(data, timeout=WAIT_S, metadata=metadata))
        else:
            channel.unary_unary(path)(data, timeout=WAIT_S, metadata=metadata)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK
