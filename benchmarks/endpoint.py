"""A model endpoint that costs next to nothing: every chat completion is the same answer, a fixed time later. A request
with tools gets the same tool call, one that asks for JSON by a schema the same judgement.

It shares the machine with what is measured, so it is a bare protocol: a web framework's server takes three times its
CPU time. `python -m benchmarks.endpoint` prints its address and serves until killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "stub"
ANSWER = "Answer: positive"
CALL = {"name": "weather", "arguments": '{"city": "Lyon", "days": 2, "unit": "C"}'}
"""The tool call that a request with tools gets."""
JUDGEMENT = '{"reason": "It says so.", "tone": 4}'
"""What a request with a schema gets."""
LATENCY_S = 0.05

_ROOT = Path(__file__).resolve().parents[1]
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def _response(status: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def _completion(said: dict[str, object], reason: str) -> bytes:
    return _response(
        "200 OK",
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [{"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 60, "completion_tokens": 3, "total_tokens": 63},
        },
    )


_COMPLETION = _completion({"content": ANSWER}, "stop")
_CALLING = _completion(
    {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": CALL}]}, "tool_calls"
)
_JUDGING = _completion({"content": JUDGEMENT}, "stop")
_MODELS = _response("200 OK", {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "bench"}]})
_NOT_FOUND = _response("404 Not Found", {"error": {"message": "not found"}})


@contextmanager
def endpoint(latency_s: float = LATENCY_S) -> Iterator[str]:
    """The base URL of an endpoint in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.endpoint", "--latency", str(latency_s)]
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def first_call(url: str) -> float:
    """When the endpoint at this base URL had its first call, in seconds since 1970; 0 when it had none."""
    with urllib.request.urlopen(f"{url}/first-call", timeout=10) as answer:
        return float(json.load(answer))


class _Server:
    """What all connections share."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.first_call = 0.0


class _Connection(asyncio.Protocol):
    """One kept connection: a request, its answer, the next request."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or (length is not None and len(body) < int(length[1])):
            return
        self._received = b""
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/chat/completions"):
            self._server.first_call = self._server.first_call or time.time()
            answer = _CALLING if b'"tools"' in body else _JUDGING if b'"json_schema"' in body else _COMPLETION
            asyncio.get_running_loop().call_later(self._server.latency_s, self._send, answer)
        elif path.endswith(b"/first-call"):
            self._send(_response("200 OK", self._server.first_call))
        else:
            self._send(_MODELS if path.endswith(b"/models") else _NOT_FOUND)

    def _send(self, response: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(response)


async def _serve(latency_s: float) -> None:
    server = _Server(latency_s)
    listener = await asyncio.get_running_loop().create_server(lambda: _Connection(server), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1", flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=LATENCY_S, help="seconds before each answer")
    asyncio.run(_serve(parser.parse_args().latency))
