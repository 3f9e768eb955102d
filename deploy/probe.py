"""`python -m deploy.probe ADDRESS` ends with exit code 0 if the process there says that it is well, else 1. ADDRESS is
host:port for gRPC's standard health check, or a URL that must answer 200. Health checks of containers run it."""

from __future__ import annotations

import sys
import urllib.request

from services import environment

TIMEOUT_S = 4.0


def main(arguments: list[str]) -> int:
    (address,) = arguments
    return 0 if (_http(address) if "://" in address else _grpc(address)) else 1


def _http(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _grpc(address: str) -> bool:
    # It runs every few seconds: so it imports what it needs, and not all that the launcher's own checks need.
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    credentials = None
    if environment.text("TOUCHSTONE_TLS_CA"):
        from services.rpc import Tls

        credentials = Tls.from_env().channel_credentials()
    channel = grpc.insecure_channel(address) if credentials is None else grpc.secure_channel(address, credentials)
    with channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
