"""`python -m deploy.probe`, by real servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from deploy import probe
from deploy.local.ports import free_port
from services import rpc
from tests import certificates

AUTHENTICATOR = rpc.Authenticator(None, "")


@contextmanager
def answering(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/healthz"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_a_url_must_answer_200(status: int, code: int) -> None:
    with answering(status) as url:
        assert probe.main([url]) == code


async def test_a_service_must_say_that_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOUCHSTONE_TLS_CA", raising=False)
    address = f"127.0.0.1:{free_port()}"

    assert await asyncio.to_thread(probe.main, [address]) == 1
    async with rpc.serve(address, AUTHENTICATOR) as server:
        assert await asyncio.to_thread(probe.main, [address]) == 1
        await server.set_ready(True)
        assert await asyncio.to_thread(probe.main, [address]) == 0


async def test_it_shows_its_certificate_where_services_use_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = certificates.make(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    for name, value in made.client.items():
        monkeypatch.setenv(name, value)

    async with rpc.serve(address, AUTHENTICATOR, tls=rpc.Tls.from_env(made.server)) as server:
        await server.set_ready(True)
        assert await asyncio.to_thread(probe.main, [address]) == 0
