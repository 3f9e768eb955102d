"""Why a service does not answer, and what to do, from gRPC's text, which names TLS errors."""

from __future__ import annotations

import grpc

from touchstone_client.settings import Settings

_HANDSHAKE = ("handshake", "certificate", "ssl_error", "tls")

_HTTP = ("Failed parsing HTTP/2", "http1.x server", "missing selected ALPN property")
"""What gRPC says of a server that answers in HTTP/1, or that offers no HTTP/2 over TLS."""


def why(code: grpc.StatusCode, details: str, address: str, variable: str, settings: Settings) -> str:
    """A sentence for users. `variable` is the setting of `address`."""
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"{address} did not answer in time. Try again, or check the service's log."
    if "WRONG_VERSION_NUMBER" in details:
        return f"{address} serves without TLS. Unset TOUCHSTONE_TLS_CA, or set {variable} to an address with TLS."
    if "not in peer certificate" in details or "Hostname Verification" in details:
        return f"The certificate of {address} is for another name. Set {variable} to a name in the certificate."
    if "CERTIFICATE_VERIFY_FAILED" in details:
        return (
            f"The certificate of {address} is not from an authority in TOUCHSTONE_TLS_CA, or has expired. "
            "Set TOUCHSTONE_TLS_CA to the authority's certificate."
        )
    if any(words in details for words in _HTTP):
        return (
            f"{address} is an HTTP port, such as the gateway's. Set {variable} to the service's gRPC port, which is "
            f"{_usual_port(variable)} unless it was changed."
        )
    if "lookup" in details or "Domain name not found" in details:
        return f"The host name in {address} was not found. Set {variable}."
    # A host's name may contain such a word.
    if any(word in details.replace(address, "").lower() for word in _HANDSHAKE):
        return f"No TLS connection to {address}: {details}. Check TOUCHSTONE_TLS_CA and the certificates."
    if "failed to connect" in details and ("Socket closed" in details or "reset by peer" in details):
        return f"{address} closed the connection. {_closed(settings)}"
    return f"Nothing answers at {address}. Start Touchstone, or set {variable}."


def _usual_port(variable: str) -> str:
    usual = Settings()
    return (usual.results if variable == "TOUCHSTONE_RESULTS" else usual.scheduler).rpartition(":")[2]


def _closed(settings: Settings) -> str:
    """A server does not explain itself to a client that it refuses: the sentence depends on what the client sent."""
    if not settings.tls_ca:
        return "If it serves with TLS, set TOUCHSTONE_TLS_CA."
    if not settings.tls_client_cert:
        return "If it asks for a client certificate, set TOUCHSTONE_TLS_CLIENT_CERT and TOUCHSTONE_TLS_CLIENT_KEY."
    return "It may not trust the certificate in TOUCHSTONE_TLS_CLIENT_CERT."
