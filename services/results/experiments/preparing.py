"""The dataset of an experiment's rows. It is kept like an upload, so that each model's job runs like any other over a
dataset."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from services.bus import Room
from services.chat_requests.strict_json import dump
from services.errors import ConflictError, InvalidRequestError
from services.experiments import grid, reading
from services.experiments.definition import ODD, Definition
from services.results.datasets.uploading import Uploads
from touchstone.v1 import dataset_pb2

_PIECE_BYTES = 1024 * 1024


class Experiments:
    """Keeps the rows of experiments, in the places for uploads of their owners."""

    def __init__(self, uploads: Uploads, room: Room) -> None:
        self._uploads, self._room = uploads, room
        self._one = asyncio.Lock()

    async def prepare(self, owner: str, text: str) -> dataset_pb2.Dataset:
        """The dataset of the experiment that the definition names: the one that there is, or else a new one.

        Raises InvalidRequestError for a wrong definition, ConflictError where the experiment of that name has other
        rows, and what keeping an upload raises.
        """
        definition = await asyncio.to_thread(_read, text)
        source = source_of(definition)
        async with self._one:
            if (made := await self._made(source)) is not None:
                return made
            self._room.require()
            options = dataset_pb2.DatasetOptions(
                name=definition.name, owner=owner, format=dataset_pb2.Dataset.FORMAT_LINES, experiment=source
            )
            async with self._uploads.place(owner):
                return await self._uploads.keep(options, _pieces(definition))

    async def find(self, text: str) -> dataset_pb2.Dataset | None:
        """The dataset that there is; None without one. Raises as `prepare`."""
        return await self._made(source_of(await asyncio.to_thread(_read, text)))

    async def _made(self, source: dataset_pb2.ExperimentSource) -> dataset_pb2.Dataset | None:
        made = await self._uploads.of_experiment(source.name)
        if made is not None and (wrong := differing(made.experiment, source)):
            raise ConflictError(wrong)
        return made


def source_of(definition: Definition) -> dataset_pb2.ExperimentSource:
    """What the rows of the definition are made from."""
    return dataset_pb2.ExperimentSource(
        name=definition.name,
        definition=json.dumps(definition.source(), ensure_ascii=False, separators=(",", ":"), allow_nan=False),
    )


def differing(kept: dataset_pb2.ExperimentSource, asked: dataset_pb2.ExperimentSource) -> str:
    """The sentence that says in what an experiment differs from another one of its name; empty if in nothing."""
    before, now = _compared(kept), _compared(asked)
    names = [name for name in dict.fromkeys([*before, *now]) if before.get(name) != now.get(name)]
    if not names:
        return ""
    told = ", ".join(_told(name, before.get(name), now.get(name)) for name in names)
    return (
        f"Experiment {kept.name} exists and differs in: {told}. Choose another name. Only models and judges can "
        "be added to an experiment."
    )


def _compared(source: dataset_pb2.ExperimentSource) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(source.definition)
    # Earlier versions did not keep it, and the hash of the scenarios says the same.
    made["scenarios"].pop(ODD, None)
    return made


def _told(name: str, before: Any, now: Any) -> str:
    """The field, with both values where they are short."""
    if isinstance(before, list | dict) or isinstance(now, list | dict):
        return name
    return f"{name} ({_shown(before)} there, {_shown(now)} here)"


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value)


def _read(text: str) -> Definition:
    try:
        # Numbers and names stay as they are: a template may insert them.
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("The definition is not JSON.", "definition") from error
    return reading.read(value)


async def _pieces(definition: Definition) -> AsyncIterator[bytes]:
    lines = grid.rows(definition)
    while piece := await asyncio.to_thread(_piece, lines):
        yield piece


def _piece(lines: Iterator[dict[str, Any]]) -> bytes:
    found = bytearray()
    for line in lines:
        found += dump(line).encode() + b"\n"
        if len(found) >= _PIECE_BYTES:
            break
    return bytes(found)
