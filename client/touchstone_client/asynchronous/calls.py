"""Channels and calls of `AsyncClient`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from touchstone_client import channels
from touchstone_client.errors import ClientError, translated
from touchstone_client.settings import Settings

R = TypeVar("R", bound=Message)


class Calls:
    """One channel to each service; every call of a client goes through here."""

    def __init__(self, settings: Settings | None = None, *, token: str | None = None) -> None:
        """`token` replaces the settings' one. Create it where an event loop runs.

        Raises OSError for a certificate that cannot be read.
        """
        self._settings = settings or Settings.from_env()
        secret = self._settings.token if token is None else token
        self._metadata: tuple[tuple[str, str], ...] = (("authorization", f"Bearer {secret}"),) if secret else ()
        self._channels = {service: self._channel(service) for service in channels.SERVICES}

    def _channel(self, service: channels.Service) -> grpc.aio.Channel:
        target = channels.target(service.address(self._settings))
        credentials = channels.credentials(self._settings)
        if credentials is None:
            return grpc.aio.insecure_channel(target, options=channels.OPTIONS)
        return grpc.aio.secure_channel(target, credentials, options=channels.OPTIONS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def _ask(self, request: Message, response: type[R], timeout_s: float | None = None) -> R:
        method = channels.method_of(request)
        call = self._channels[method.service].unary_unary(
            method.path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )
        try:
            return await call(request, timeout=timeout_s or self._settings.timeout_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise self._translated(error, method.service) from error

    async def _pages(self, request: Any, response: type[R], timeout_s: float | None = None) -> AsyncIterator[R]:
        """The pages of a list call, each requested when the previous one is used up."""
        while True:
            page: Any = await self._ask(request, response, timeout_s)
            yield page
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def _stream(self, request: Message, response: type[R], timeout_s: float | None) -> AsyncIterator[R]:
        method = channels.method_of(request)
        call = self._channels[method.service].unary_stream(
            method.path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )
        answers = call(request, timeout=timeout_s, metadata=self._metadata)
        try:
            async for answer in answers:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise self._translated(error, method.service) from error
        finally:
            answers.cancel()

    async def _send(self, requests: Iterable[Message], kind: type[Message], response: type[R], timeout_s: float) -> R:
        """A call whose requests, all of one kind, are created in a thread while they are sent. Raises the errors of
        creating them."""
        method = channels.method_of(kind())
        send = self._channels[method.service].stream_unary(
            method.path, request_serializer=kind.SerializeToString, response_deserializer=response.FromString
        )
        made = _Requests(requests)
        call = send(made, timeout=timeout_s, metadata=self._metadata)
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise made.failure or self._translated(error, method.service) from error
        except asyncio.CancelledError:
            # gRPC cancels a call whose requests fail.
            if made.failure is None:
                raise
            raise made.failure from None

    def _translated(self, error: grpc.aio.AioRpcError, service: channels.Service) -> ClientError:
        return translated(error, service.address(self._settings), service.variable, self._settings)


class _Requests(AsyncIterator[Message]):
    """The iterator from which gRPC takes requests; it keeps a failure for the caller."""

    def __init__(self, requests: Iterable[Message]) -> None:
        self._requests = iter(requests)
        self.failure: Exception | None = None

    async def __anext__(self) -> Message:
        try:
            made = await asyncio.to_thread(next, self._requests, None)
        except Exception as error:
            self.failure = error
            raise
        if made is None:
            raise StopAsyncIteration
        return made
