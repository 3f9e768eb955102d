"""Connections to a Touchstone installation, for programs with and without an event loop."""

from __future__ import annotations

from touchstone_client import asynchronous, blocking


class Client(blocking.Datasets, blocking.Results):
    """All public services of one installation.

    Calls raise the errors of `touchstone_client.errors` and end within `Settings.timeout_s`. Lists are read page by
    page while they are iterated. Creates carry a request id, so that a repeated call creates one job. Thread-safe.
    """


class AsyncClient(asynchronous.Datasets, asynchronous.Results):
    """`Client`'s methods, awaited; lists, watches and exports are iterated with `async for`."""
