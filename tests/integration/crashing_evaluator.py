"""An evaluator whose provider kills the process at one item: `crashing_evaluator.py <nats url> <item>`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from services.bus import connect
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers.protocol.provider import Listing, Request, no_loglikelihood
from services.evaluator.settings import Settings
from services.evaluator.worker import Worker
from touchstone.v1 import endpoint_pb2


class Crashing:
    """A provider that answers in 20 ms, except for one item."""

    def __init__(self, item: int) -> None:
        self._item = item

    async def list_models(self) -> Listing:
        return Listing((endpoint_pb2.Model(model="stub"),))

    async def generate(self, request: Request) -> Response:
        await asyncio.sleep(0.02)
        if request.item.index == self._item:
            os.kill(os.getpid(), signal.SIGKILL)
        return Response("no answer")

    async def loglikelihoods(self, request: Request) -> Response:
        raise no_loglikelihood("crashing")

    async def close(self) -> None:
        return


async def main(url: str, item: int) -> None:
    bus = await connect(url, "crashing")
    worker = Worker(
        # A heartbeat that a busy machine holds up longer would count as a crash.
        Settings("crashing", "127.0.0.1:0", ack_wait_s=3.0),
        bus,
        Catalogue(None),
        [Endpoint("stub", "openai", concurrency=2)],
        lambda endpoint: Crashing(item),
    )

    async def ready() -> None:
        print("ready", flush=True)

    await worker.run(asyncio.Event(), ready)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
