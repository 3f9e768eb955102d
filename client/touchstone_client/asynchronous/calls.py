"""Channels and calls of `AsyncClient`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from services.words import addresses
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
        self._channels = {service: self._connected(service) for service in channels.SERVICES}
        replica = self._settings.replica
        self._copy = self._channel(replica, channels.RESULTS, listed=True) if replica else None
        self.as_of = ""
        """When the last answer of the results' copy was so, as ISO 8601; empty if the services gave the last answer."""

    def _connected(self, service: channels.Service) -> list[grpc.aio.Channel]:
        """A channel to each address of the service, the one that answered last first."""
        listed = addresses.split(service.address(self._settings))
        return [self._channel(address, service, listed=len(listed) > 1) for address in listed]

    def _channel(self, address: str, service: channels.Service, *, listed: bool) -> grpc.aio.Channel:
        options, credentials = channels.options(address, service, listed=listed), channels.credentials(self._settings)
        if credentials is None:
            return grpc.aio.insecure_channel(address, options=options)
        return grpc.aio.secure_channel(address, credentials, options=options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for listed in self._channels.values():
            for channel in listed:
                await channel.close()
        if self._copy is not None:
            await self._copy.close()

    async def _ask(self, request: Message, response: type[R], timeout_s: float | None = None) -> R:
        method = channels.method_of(request)
        search = channels.search(self._channels[method.service], method, timeout_s or self._settings.timeout_s)
        while True:
            channel = search.current
            call = channel.unary_unary(
                method.path,
                request_serializer=type(request).SerializeToString,
                response_deserializer=response.FromString,
            )
            try:
                answer: R = await call(request, timeout=search.left_s, metadata=self._metadata)
                self.as_of = ""
                return answer
            except grpc.aio.AioRpcError as error:
                if (pause_s := search.pause_s(channel, error)) is None:
                    if channels.may_copy(method, error) and (
                        (copied := await self._copied(method, request, response)) is not None
                    ):
                        return copied
                    raise self._translated(error, method.service) from error
            await asyncio.sleep(pause_s)

    async def _copied(self, method: channels.Method, request: Message, response: type[R]) -> R | None:
        """The answer of the results' copy; None without one."""
        if self._copy is None:
            return None
        call = self._copy.unary_unary(
            method.path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )
        try:
            asked = call(request, timeout=self._settings.timeout_s, metadata=self._metadata)
            answer: R = await asked
            told = dict(await asked.initial_metadata())
        except grpc.aio.AioRpcError:
            return None
        if (as_of := str(told.get(addresses.AS_OF, ""))) != self.as_of:
            self.as_of = as_of
            channels.tell_age(as_of)
        return answer

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
        search = channels.search(self._channels[method.service], method, timeout_s)
        begun = False
        while True:
            channel = search.current
            call = channel.unary_stream(
                method.path,
                request_serializer=type(request).SerializeToString,
                response_deserializer=response.FromString,
            )
            answers = call(request, timeout=search.left_s, metadata=self._metadata)
            try:
                async for answer in answers:
                    begun = True
                    yield answer
                return
            except grpc.aio.AioRpcError as error:
                # A server that has begun to answer is kept.
                if begun or (pause_s := search.pause_s(channel, error)) is None:
                    raise self._translated(error, method.service) from error
            finally:
                answers.cancel()
            await asyncio.sleep(pause_s)

    async def _living(self, listed: list[grpc.aio.Channel]) -> grpc.aio.Channel:
        """One whose server answers, for a call that cannot be sent again; the first if none does or it is alone."""
        for channel in [*listed] if len(listed) > 1 else ():
            try:
                await channel.unary_unary(addresses.LOOK, bytes, bytes)(b"", timeout=addresses.LOOK_S)
            except grpc.aio.AioRpcError as error:
                if addresses.silent(error):
                    continue
            return channel
        return listed[0]

    async def _send(self, requests: Iterable[Message], kind: type[Message], response: type[R], timeout_s: float) -> R:
        """A call whose requests, all of one kind, are created in a thread while they are sent. Raises the errors of
        creating them."""
        method = channels.method_of(kind())
        channel = await self._living(self._channels[method.service])
        send = channel.stream_unary(
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
