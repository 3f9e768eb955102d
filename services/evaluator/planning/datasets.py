"""Plans of jobs over datasets. Every row that a job would run is checked first: a row that cannot be asked or scored is
reported before the first call, not after thousands."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from services import further_fields
from services.errors import InvalidRequestError
from services.evaluator.answers.reading import layers
from services.evaluator.datasets import rows
from services.evaluator.datasets.task import PROMPT_HASH, TASK, DatasetTask
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.items.task import Message
from services.evaluator.planning.budget import MostCost, reserve
from services.evaluator.plugins.contract import PluginError
from services.evaluator.provider_batches.planning import line_bytes, unit_rows
from services.evaluator.providers.baseline import NO_REFERENCE
from services.evaluator.providers.protocol.capabilities import Resolved
from services.evaluator.providers.protocol.provider import ProviderError
from services.words import references, refusals
from services.words.suites import MAJORITY
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.dataset_pb2 import DatasetRow

MOST_IN_GROUPS = 50_000
"""Rows of a decision whose plan names their groups: up to 20 jobs with their plans must fit into a message."""
_MOST_SAMPLINGS = 10_000
"""How many different ones are remembered as checked."""
_MOST_NAMES = 100


@dataclass(frozen=True, slots=True)
class Caller:
    """What a job calls, if it calls a model. `resolve` gives the parameters that are sent for a sampling, and raises
    ProviderError for those that the model refuses; so does `check_content` for messages and further fields that it
    cannot be sent. `most_cost` is set for jobs with a budget. `baseline` is the name of one; `batch` says how batches
    are cut for a job that uses the provider's batch API."""

    resolve: Callable[[job_pb2.Sampling], Resolved]
    most_cost: MostCost | None
    baseline: str = ""
    batch: BatchOptions | None = None
    check_content: Callable[[Sequence[Message], Mapping[str, Any]], None] = lambda messages, fields: None


async def plan(spec: job_pb2.JobSpec, task: DatasetTask, unit_size: int, caller: Caller | None) -> job_pb2.TaskPlan:
    """`caller` is None for a job that takes all answers from the store. Reads all rows of the job. Raises
    InvalidRequestError and DataError."""
    looked = _Looked(spec, task, caller)
    async for numbered in task.batches():
        await task.apart(partial(looked.at, numbered))
    if caller is not None and caller.baseline == MAJORITY and not looked.with_reference:
        raise InvalidRequestError(NO_REFERENCE, "model")
    if task.further and not looked.with_reference:
        raise InvalidRequestError(
            "No row has a reference for the first scorer, and rows that it does not score count for no further one. "
            "Leave further scorers out, or put one first that can score the rows.",
            "spec.dataset.further",
        )
    if looked.no_group:
        raise InvalidRequestError(
            f"No row of the job has {task.group_field}, which must name the row's group. Name another group_field, or "
            "leave it out.",
            "dataset.scoring.group_field",
        )
    together = references.numbered(looked.groups)
    if together and len(together) > MOST_IN_GROUPS:
        raise InvalidRequestError(
            f"A decision over rows in groups takes at most {MOST_IN_GROUPS:,} rows, not {len(together):,}. Set limit.",
            "dataset.limit",
        )
    if caller is not None and caller.batch is not None:
        unit_size = await asyncio.to_thread(unit_rows, looked.sizes, caller.batch)
    planned = job_pb2.TaskPlan(
        task=TASK,
        title=task.name,
        version=task.version,
        scorer_version=task.scorer_version,
        items=len(task.chosen),
        published_items=task.info.published_items,
        data=task.info.data,
        item_set=task.item_set,
        # Without any reference there is nothing to measure; the answers are for reading and comparing.
        metrics=task.metrics if looked.with_reference else (),
        unit_size=unit_size,
        prompt_hash=PROMPT_HASH,
        repeats=1,
        row_parameters=sorted(looked.names)[:_MOST_NAMES],
        reading=layers.reading_of(task.reading),
        plugin=task.plugin,
        question_set=looked.questions.hash() if spec.HasField("deciding") else "",
        clusters=together,
    )
    if caller is not None and caller.most_cost is not None:
        reserve(spec, planned, looked.most_usd)
    return planned


def check_mode(spec: job_pb2.JobSpec) -> None:
    """Raises InvalidRequestError."""
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError(refusals.GENERATE_ONLY, "mode")


class _Looked:
    """What the rows show as they are read."""

    def __init__(self, spec: job_pb2.JobSpec, task: DatasetTask, caller: Caller | None) -> None:
        self._spec, self._task, self._caller = spec, task, caller
        self._takes_stop: dict[bytes, bool] = {}
        self._own: job_pb2.Sampling | None = None
        """Of the row before. Rows with the same parameters share theirs, which are looked at once."""
        self.with_reference = 0
        self.most_usd = 0.0
        self.names: set[str] = set()
        """Parameters that rows themselves set."""
        self.questions = task.questions()
        self.groups: list[str] = []
        """Of the rows of a decision."""
        self.no_group = task.names_groups
        """Whether the job names a field for groups that no row so far has. Its intervals would be too narrow, and
        nobody would notice. That of the dataset was looked at when it was uploaded."""
        self.sizes: list[int] = []
        """Bytes of the rows as lines of a batch, for a job that uses one."""

    def at(self, numbered: list[tuple[int, DatasetRow]]) -> None:
        for number, row in numbered:
            try:
                answers = self._task.answers(number, row)
                self.questions.add(row, answers)
                if self._spec.HasField("deciding"):
                    self.groups.append(self._task.group(row))
                if self.no_group:
                    self.no_group = not self._task.group(row)
                if answers:
                    self.with_reference += 1
                    self._task.further_answers(number, row)
            except PluginError as error:
                raise PluginError(f"{self._task.named(number, row)}: {error.message}") from error
            own = rows.asked_with(row, self._spec.sampling)
            another = own is not self._own or bool(row.stop)
            if another:
                self.names.update(rows.asked_names(row))
            if self._caller is not None:
                sampling = self._spec.sampling if own is None else own
                self._ask(self._caller, number, row, sampling, another and (own is not None or bool(row.stop)))
            self._own = own

    def _ask(self, caller: Caller, number: int, row: DatasetRow, sampling: job_pb2.Sampling, another: bool) -> None:
        """`another`: whether the row's parameters have to be looked at."""
        try:
            if another and not caller.baseline:
                self._require_taken(caller, sampling, row)
            messages = rows.messages(row)
            if row.has_parts and not caller.baseline:
                caller.check_content(messages, further_fields.fields(sampling))
            if caller.batch is not None:
                self.sizes.append(line_bytes(messages, sampling))
            if caller.most_cost is not None:
                self.most_usd = max(self.most_usd, caller.most_cost.written(messages, sampling))
        except (ProviderError, InvalidRequestError) as error:
            where = f"{self._task.named(number, row)} cannot be run"
            raise InvalidRequestError(f"{where}: {error.message}", "dataset") from error

    def _require_taken(self, caller: Caller, sampling: job_pb2.Sampling, row: DatasetRow) -> None:
        # Its hash, as each row may bring its own schema of 64 KB.
        key = hashlib.sha256(sampling.SerializeToString(deterministic=True)).digest()
        takes_stop = self._takes_stop.get(key)
        if takes_stop is None:
            caller.check_content((), further_fields.fields(sampling))
            takes_stop = caller.resolve(sampling).stop
            if len(self._takes_stop) < _MOST_SAMPLINGS:
                self._takes_stop[key] = takes_stop
        if row.stop and not takes_stop:
            raise InvalidRequestError(
                f"{self._spec.model} does not take stop strings. Remove stop from the row, or set stop = true for "
                "the model in the endpoints file.",
                "stop",
            )
