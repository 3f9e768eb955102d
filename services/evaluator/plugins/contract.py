"""What a package may offer, and the errors that name it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from services.errors import TouchstoneError
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.providers.protocol.provider import Provider
from services.words.plugins import PROVIDER, SCORER, SUITE

GROUPS = {"touchstone.suites": SUITE, "touchstone.scorers": SCORER, "touchstone.providers": PROVIDER}
"""Groups of entry points, each with what a part of it is called. The name of an entry point is that of its suite,
scorer or kind; its value is the suite's module, a `Scorer`, or a `ProviderKind`."""
NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class PluginError(TouchstoneError):
    """Code of a package failed, or did not end. The message names the package."""


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of endpoints. `make` connects to nothing yet; the provider that it gives lives in the package's process
    and is asked there in one event loop. `Request.task` is None there: an item has all that a provider may look at."""

    kind: Kind
    make: Callable[[Endpoint], Provider]


@dataclass(frozen=True)
class Limits:
    """Of one package's process: seconds to import one part, for a call that reads a suite's data, and for the scoring
    of one answer; bytes of memory."""

    import_s: float = 30.0
    data_s: float = 600.0
    score_s: float = 10.0
    memory_bytes: int = 4 * 2**30
