"""Reads a unit's items, and refuses data that differs from the plan."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from services.bus import IMPORTED, of_job
from services.errors import TouchstoneError
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.catalogue import Catalogue, Selection
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.datasets.task import AnyTask, DatasetTask
from services.evaluator.imports.finding import Found, find
from services.evaluator.imports.store import ImportStore
from services.evaluator.items.task import Item, Task
from services.evaluator.plugins.contract import NotHereError, PluginError
from services.evaluator.units.units_in_hand import FaultError
from services.words.watches import canary_rows
from touchstone.v1 import job_pb2, unit_pb2

log = logging.getLogger(__name__)

_REMEMBERED = 64
_REMEMBERED_ROWS = 8
_Key = tuple[Task, int, int, str]
_RowsKey = tuple[DatasetTask, str]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A unit's items in order, each with its position among the job's answers and its repeat.

    `found` gives the items' answers in an import whose answers identify their item by an id or a text.
    """

    task: AnyTask
    items: Sequence[tuple[int, int, Item]]
    found: Found | None = None


class Loader:
    """Loads units in threads; each selection is read and hashed once, however many units need it at a time."""

    def __init__(self, catalogue: Catalogue, imports: ImportStore, datasets: OpenDatasets) -> None:
        self._catalogue = catalogue
        self._imports = imports
        self._datasets = datasets
        self._reading: defaultdict[_Key | _RowsKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._selections: dict[_Key, tuple[Selection, Found | None]] = {}
        self._rows: dict[_RowsKey, tuple[DatasetTask, Found]] = {}

    async def load(self, unit: unit_pb2.Unit) -> Loaded:
        """Raises FaultError when the data is missing or differs from the plan's, and NotHereError when the unit's
        plug-in is missing."""
        self.require_plugin(unit)
        if unit.spec.WhichOneof("work") == "dataset":
            return await self._load_rows(unit)
        work = unit.spec.suite
        try:
            task = self._catalogue.task_of(unit.spec, unit.task)
            selection, found = await self._selection(task, unit)
            if unit.item_set and unit.item_set != selection.item_set:
                raise FaultError(
                    f"Failed to load {self.title(work.suite)} dataset: the rows of {unit.task} differ from those that "
                    "were planned. Give all evaluators the same data, then start the job again."
                )
            items = await self._catalogue.apart(work.suite, _read, task, unit, selection)
            return Loaded(task, items, found)
        except PluginError as error:
            raise FaultError(error.message) from error
        except TouchstoneError as error:
            raise FaultError(self.data_error(work, error)) from error

    def lacking(self, unit: unit_pb2.Unit) -> str:
        """Why the unit needs an evaluator with another version of a plug-in, which may ask or score otherwise; empty if
        this one will do. Units of versions that did not record their plug-in tell nothing."""
        spec = unit.spec
        of_rows = spec.WhichOneof("work") == "dataset"
        here = self._datasets.plugin(spec.dataset) if of_rows else self._catalogue.plugin(spec.suite.suite)
        if unit.plugin in ("", here):
            return ""
        return f"it needs the plug-in {unit.plugin}; this evaluator has {here or 'no such plug-in'}"

    def require_plugin(self, unit: unit_pb2.Unit) -> None:
        """Raises NotHereError."""
        if why := self.lacking(unit):
            raise NotHereError(why)

    async def _load_rows(self, unit: unit_pb2.Unit) -> Loaded:
        work = unit.spec.dataset
        try:
            task = await self._datasets.task(work, Layer.asked(unit.spec.reading))
            found: Found | None = None
            if rows := canary_rows(unit.spec):
                task = task.only(rows[unit.task])
            if import_id := unit.spec.reuse.import_id:
                task, found = await self._found_rows(task, import_id)
            if unit.item_set and unit.item_set != task.item_set:
                raise FaultError(
                    f"The rows of {task.name} differ from those that were planned. Run one version of Touchstone on "
                    "all evaluators, then start the job again."
                )
            positions = _positions(unit)
            items = await task.items(positions, unit.spec.sampling)
        except TouchstoneError as error:
            raise FaultError(error.message) from error
        return Loaded(task, [(position, 0, item) for position, item in zip(positions, items, strict=True)], found)

    async def _found_rows(self, task: DatasetTask, import_id: str) -> tuple[DatasetTask, Found]:
        key = (task, import_id)
        if key not in self._rows:
            async with self._reading[key]:
                if key not in self._rows:
                    found = await find(self._imports, import_id, task.info.task, task)
                    self._rows[key] = (task.only(list(found.answers)), found)
            self._reading.pop(key, None)
            while len(self._rows) > _REMEMBERED_ROWS:
                self._rows.pop(next(iter(self._rows)))
        return self._rows[key]

    async def _selection(self, task: Task, unit: unit_pb2.Unit) -> tuple[Selection, Found | None]:
        work = unit.spec.suite
        if canaries := canary_rows(unit.spec):
            # Few, and each job has its own.
            return await self._catalogue.apart(work.suite, self._catalogue.chosen, task, canaries[unit.task]), None
        limit, seed = work.limit, work.seed
        import_id = unit.spec.reuse.import_id
        key = (task, limit, seed, import_id)
        if key not in self._selections:
            async with self._reading[key]:
                if key not in self._selections:
                    began = time.monotonic()
                    found: Found | None = None
                    if unit.spec.endpoint == IMPORTED:
                        found = await find(self._imports, import_id, unit.task, task)
                        read = await self._catalogue.apart(
                            work.suite, self._catalogue.chosen, task, list(found.answers)
                        )
                    elif import_id:
                        rows = await self._imports.rows(import_id, unit.task)
                        read = await self._catalogue.apart(work.suite, self._catalogue.chosen, task, rows.items)
                    else:
                        read = await self._catalogue.apart(work.suite, self._catalogue.selection, task, limit, seed)
                    self._selections[key] = (read, found)
                    took_s = time.monotonic() - began
                    extra = of_job(unit.job_id)
                    log.info("%s: %d items read in %.1f s", unit.task, len(read.indexes), took_s, extra=extra)
            self._reading.pop(key, None)
            while len(self._selections) > _REMEMBERED:
                self._selections.pop(next(iter(self._selections)))
        return self._selections[key]

    def data_error(self, work: job_pb2.SuiteWork, error: TouchstoneError) -> str:
        """The error for data that cannot be read."""
        return f"Failed to load {self.title(work.suite)} dataset: {error.message}"

    def title(self, suite: str) -> str:
        return next((known.title for known in self._catalogue.suites() if known.suite == suite), suite)


def _positions(unit: unit_pb2.Unit) -> Sequence[int]:
    return list(unit.positions) or range(unit.start, unit.stop)


def _read(task: Task, unit: unit_pb2.Unit, selection: Selection) -> list[tuple[int, int, Item]]:
    positions = _positions(unit)
    repeats = max(1, unit.spec.suite.repeats)
    indexes = [selection.indexes[position // repeats] for position in positions]
    items = zip(positions, task.items(indexes), strict=True)
    return [(position, position % repeats, item) for position, item in items]
