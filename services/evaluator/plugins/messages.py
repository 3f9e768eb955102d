"""What the evaluator and a package's process say to each other, as pickled objects over a pair of sockets."""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import dataclass
from typing import Any

from services.evaluator.answers.reading.layers import Layer
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.plugins.contract import Package, Part
from touchstone.v1 import suite_pb2


@dataclass(frozen=True, slots=True)
class Setup:
    """The first message of the evaluator. `skip` are parts that are not to be imported; `data_dir` is the root of a
    mirror, or empty."""

    package: Package
    skip: tuple[Part, ...]
    data_dir: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a task tells in one mode without its data."""

    metrics: tuple[suite_pb2.MetricSpec, ...]
    labels: tuple[str, ...]
    scale: tuple[float, float] | None
    version: str
    scorer_version: str
    reading: Layer | None


@dataclass(frozen=True, slots=True)
class DefinitionFacts:
    """A task of a suite, by mode."""

    info: suite_pb2.TaskInfo
    optional: bool
    most_shots: int
    modes: dict[suite_pb2.Mode, TaskFacts]


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """A suite as its module declares it."""

    title: str
    description: str
    weighting: suite_pb2.Weighting
    definitions: tuple[DefinitionFacts, ...]


@dataclass(frozen=True, slots=True)
class ScorerFacts:
    """A scorer without its functions. `reads` tells that it takes the answer out of a response itself; `stated` that
    it has a function for the first of several answers."""

    title: str
    version: str
    metrics: tuple[suite_pb2.MetricSpec, ...]
    statistics: tuple[str, ...]
    reads: bool
    first: bool


Facts = SuiteFacts | ScorerFacts | Kind


@dataclass(frozen=True, slots=True)
class Importing:
    """The process begins to import a part: if it ends now, the part is to blame."""

    part: Part


@dataclass(frozen=True, slots=True)
class Imported:
    """A part with what it tells, packed, or a sentence that says why it cannot be used."""

    part: Part
    facts: bytes | str


@dataclass(frozen=True, slots=True)
class Ready:
    """All parts have been imported."""


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Tells a task of one suite apart."""

    suite: str
    task: str
    mode: suite_pb2.Mode
    shots: int
    reading: Layer | None


@dataclass(frozen=True, slots=True)
class OfTask:
    """Call a method of a task."""

    key: TaskKey
    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class OfScorer:
    """Call a function of a scorer."""

    scorer: str
    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reference that a scorer cannot compare with. `why` continues after "the reference"."""

    why: str


@dataclass(frozen=True, slots=True)
class OfProvider:
    """Await a method of the provider of an endpoint."""

    endpoint: Endpoint
    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Alive:
    """Answer at once."""


Call = OfTask | OfScorer | OfProvider | Alive


@dataclass(frozen=True, slots=True)
class Asked:
    """A call with the number by which its answer names it. None cancels the call of that number."""

    number: int
    call: Call | None


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call gave, or the error that it raised where that is one of Touchstone's own; packed."""

    number: int
    value: bytes = b""
    error: bytes = b""


@dataclass(frozen=True, slots=True)
class Failed:
    """A call raised something else: "ValueError: no such word"."""

    number: int
    why: str


class ForeignClassError(Exception):
    """What was packed holds an object of a class that is not loaded here. The message continues after "it gave"."""


def packed(value: object) -> bytes:
    """Raises whatever pickling it raises."""
    return pickle.dumps(value)


def unpacked(value: bytes) -> Any:
    """What was packed. Imports nothing for it: the code of a package stays in its own process. Raises
    ForeignClassError."""
    return _Unpickler(io.BytesIO(value)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module not in sys.modules:
            raise ForeignClassError(f"an object of {module}.{name}. Give plain texts, numbers, lists and dictionaries")
        return super().find_class(module, name)
