"""What a package may offer, which installed packages do, and the error that names one. Imports none of them."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata

from services.errors import TouchstoneError, sendable
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.providers.protocol.provider import Provider
from services.words.plugins import NAME, PROVIDER, SCORER, SUITE

log = logging.getLogger(__name__)

GROUPS = {"touchstone.suites": SUITE, "touchstone.scorers": SCORER, "touchstone.providers": PROVIDER}
"""Groups of entry points, each with what a part of it is called. The name of an entry point is that of its suite,
scorer or kind; its value is the suite's module, a `Scorer`, or a `ProviderKind`."""


class PluginError(TouchstoneError):
    """Code of a package failed, or did not end. The message names the package."""


class NotHereError(Exception):
    """This evaluator lacks the plug-in that a unit needs. Nothing of the unit has begun, and it goes back for an
    evaluator that has the plug-in."""


def said(error: BaseException) -> str:
    """ "ValueError: no such word", at most 500 characters, whatever the error makes of being asked."""
    try:
        text = sendable(" ".join(str(error).split()))
    except Exception:
        text = ""
    return f"{type(error).__name__}{f': {text[:500]}' if text else ''}".rstrip(".")


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


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One entry point. `what` is "suite", "scorer" or "provider"."""

    what: str
    name: str
    value: str

    @property
    def label(self) -> str:
        """ "suite arithmetic"."""
        return f"{self.what} {self.name}"


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution with the parts that it offers, in order."""

    name: str
    version: str
    parts: tuple[Part, ...]

    @property
    def label(self) -> str:
        """ "touchstone-example 1.0"."""
        return f"{self.name} {self.version}"


def packages() -> list[Package]:
    """By name. Of two copies of one package the first on the path counts, as for imports."""
    found: dict[str, Package] = {}
    for distribution in metadata.distributions():
        try:
            package = _package(distribution)
        except Exception:  # Files that anybody may have damaged.
            log.warning("the metadata of an installed package cannot be read", exc_info=True)
            continue
        if package is not None:
            found.setdefault(package.name, package)
    return [found[name] for name in sorted(found)]


def _package(distribution: metadata.Distribution) -> Package | None:
    parts = tuple(sorted({Part(GROUPS[each.group], each.name, each.value) for each in _entries(distribution)}))
    name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
    return Package(name, distribution.version, parts) if parts else None


def _entries(distribution: metadata.Distribution) -> Iterable[metadata.EntryPoint]:
    return (each for each in distribution.entry_points if each.group in GROUPS)


def unusable(found: Iterable[Package], built_in: Mapping[str, Collection[str]]) -> dict[tuple[str, Part], str]:
    """By package and part, why its name cannot be used. `built_in` are Touchstone's own names of each kind of part."""
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    listed = list(found)
    for package in listed:
        for part in package.parts:
            owners[part.what, part.name].append(package.name)
    return {
        (package.name, part): why
        for package in listed
        for part in package.parts
        if (why := _why(part, built_in[part.what], owners[part.what, part.name]))
    }


def _why(part: Part, built_in: Collection[str], owners: list[str]) -> str:
    if not NAME.fullmatch(part.name):
        return f"The name {part.name[:80]!r} must have 1 to 40 lower-case letters, digits, _ or -, a letter first."
    if part.name in built_in:
        return f"{part.name} is the name of a built-in {part.what}. Rename it."
    if len(owners) > 1:
        return (
            f"{' and '.join(owners)} all offer {part.label}. Uninstall all but one."
            if len(owners) > 2
            else (f"{' and '.join(owners)} both offer {part.label}. Uninstall one.")
        )
    return ""
