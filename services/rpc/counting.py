"""Counts calls by method and status, for metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing
from typing import Any

import grpc

from services.telemetry import metrics

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class CountingInterceptor(grpc.aio.ServerInterceptor):
    """Counts calls of these services, by their full names. Unknown methods are not counted."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        _, service, method = f"{handler_call_details.method}//".split("/")[:3]
        if handler is None or service not in self._names:
            return handler
        rpc = f"{service.rpartition('.')[2]}/{method}"
        codec = (handler.request_deserializer, handler.response_serializer)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(_stream(rpc, handler.unary_stream), *codec)
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(_unary(rpc, handler.stream_unary), *codec)
        return grpc.unary_unary_rpc_method_handler(_unary(rpc, handler.unary_unary), *codec)


def _unary(rpc: str, behaviour: Any) -> Any:
    async def call(request: Any, context: Any) -> Any:
        began = time.monotonic()
        cancelled = False
        try:
            return await behaviour(request, context)
        except asyncio.CancelledError:
            cancelled = True
            raise
        finally:
            metrics.RPC_SECONDS.observe(time.monotonic() - began, rpc)
            metrics.RPC_REQUESTS.add(rpc, _code(context, cancelled=cancelled))

    return call


def _stream(rpc: str, behaviour: Any) -> Any:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        began = time.monotonic()
        waits, cancelled = True, False
        try:
            async with aclosing(behaviour(request, context)) as responses:
                async for response in responses:
                    if waits:
                        metrics.RPC_SECONDS.observe(time.monotonic() - began, rpc)
                        waits = False
                    yield response
        except (asyncio.CancelledError, GeneratorExit):
            cancelled = True
            raise
        finally:
            metrics.RPC_REQUESTS.add(rpc, _code(context, cancelled=cancelled))

    return call


def _code(context: Any, *, cancelled: bool) -> str:
    if cancelled:
        return grpc.StatusCode.CANCELLED.name
    code = context.code()  # A number where none was set.
    return code.name if isinstance(code, grpc.StatusCode) else _CODES.get(code or 0, grpc.StatusCode.UNKNOWN.name)
