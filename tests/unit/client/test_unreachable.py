"""What is said when no service answers: each mistake with TLS has its own sentence."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from deploy.local.ports import free_port
from services import rpc
from tests.certificates import Certificates, make
from tests.unit.client.fakes import serving
from touchstone_client import Client, Settings, UnreachableError


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def one_sided(certificates: Certificates) -> Iterator[str]:
    """The address of a server that shows a certificate and asks for none."""
    tls = rpc.Tls(cert=certificates.path("server.pem"), key=certificates.path("server.key"))
    with serving(tls.server_credentials()) as fakes:
        yield fakes.address


@pytest.fixture(scope="module")
def demanding(certificates: Certificates) -> Iterator[str]:
    with serving(rpc.Tls.from_env(certificates.server).server_credentials()) as fakes:
        yield fakes.address


def said(address: str, ca: str = "", cert: str = "", key: str = "") -> str:
    settings = Settings(address, address, timeout_s=20, tls_ca=ca, tls_client_cert=cert, tls_client_key=key)
    with Client(settings) as client, pytest.raises(UnreachableError) as raised:
        client.queue()
    return raised.value.message.replace(address, "ADDRESS")


def test_without_tls_to_a_server_with_it(one_sided: str) -> None:
    assert said(one_sided) == "ADDRESS closed the connection. If it serves with TLS, set TOUCHSTONE_TLS_CA."


def test_with_tls_to_a_server_without_it(certificates: Certificates) -> None:
    with serving() as fakes:
        assert said(fakes.address, certificates.path("ca.pem")) == (
            "ADDRESS serves without TLS. Unset TOUCHSTONE_TLS_CA, or set TOUCHSTONE_SCHEDULER to an address with TLS."
        )


def test_another_authority(one_sided: str, certificates: Certificates) -> None:
    assert said(one_sided, certificates.path("stranger.pem")) == (
        "The certificate of ADDRESS is not from an authority in TOUCHSTONE_TLS_CA, or has expired. "
        "Set TOUCHSTONE_TLS_CA to the authority's certificate."
    )


def test_another_name(certificates: Certificates) -> None:
    """The certificate is for 127.0.0.1 and localhost."""
    tls = rpc.Tls(cert=certificates.path("server.pem"), key=certificates.path("server.key"))
    with serving(tls.server_credentials(), "127.0.0.2") as fakes:
        assert said(fakes.address, certificates.path("ca.pem")) == (
            "The certificate of ADDRESS is for another name. Set TOUCHSTONE_SCHEDULER to a name in the certificate."
        )


def test_no_client_certificate(demanding: str, certificates: Certificates) -> None:
    assert said(demanding, certificates.path("ca.pem")) == (
        "ADDRESS closed the connection. If it asks for a client certificate, set TOUCHSTONE_TLS_CLIENT_CERT and "
        "TOUCHSTONE_TLS_CLIENT_KEY."
    )


def test_a_client_certificate_of_another_authority(demanding: str, certificates: Certificates) -> None:
    own = certificates.path("their.pem"), certificates.path("their.key")
    assert said(demanding, certificates.path("ca.pem"), *own) == (
        "ADDRESS closed the connection. It may not trust the certificate in TOUCHSTONE_TLS_CLIENT_CERT."
    )


class _Http(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("tls", [False, True])
def test_a_port_of_http(tls: bool, certificates: Certificates) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Http)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.path("server.pem"), certificates.path("server.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert said(f"127.0.0.1:{server.server_port}", certificates.path("ca.pem") if tls else "") == (
            "ADDRESS is an HTTP port, such as the gateway's. Set TOUCHSTONE_SCHEDULER to the service's gRPC port, "
            "which is 8051 unless it was changed."
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_nothing_but_the_sentence_is_printed(certificates: Certificates) -> None:
    """gRPC prints each failed handshake, unless its verbosity is set before it is imported."""
    script = "import sys; from touchstone_client.__main__ import main; sys.argv[1:] = ['queue']; sys.exit(main())"
    with serving() as fakes:
        environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"} | {
            "TOUCHSTONE_SCHEDULER": fakes.address,
            "TOUCHSTONE_TLS_CA": certificates.path("ca.pem"),
        }
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.stderr == (
        f"touchstone: {fakes.address} serves without TLS. Unset TOUCHSTONE_TLS_CA, or set TOUCHSTONE_SCHEDULER to an "
        "address with TLS.\n"
    )


def test_a_closed_port_and_an_unknown_host() -> None:
    closed = said(f"127.0.0.1:{free_port()}")
    assert closed == "Nothing answers at ADDRESS. Start Touchstone, or set TOUCHSTONE_SCHEDULER."
    assert said("tls.host.invalid:1") == "The host name in ADDRESS was not found. Set TOUCHSTONE_SCHEDULER."
