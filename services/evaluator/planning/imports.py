"""Plans of jobs over imported answers: the rows of the log, and whose prompts were sent."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence

import services
from services.bus import IMPORTED
from services.errors import InvalidRequestError
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.imports.finding import Found, find
from services.evaluator.imports.matching import prompts_of
from services.evaluator.imports.store import ImportedRows, ImportStore
from services.evaluator.planning import datasets
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.results_service_pb2 import ImportedRun

log = logging.getLogger(__name__)

_HASH_DIGITS = 16


async def plan(
    spec: job_pb2.JobSpec, store: ImportStore, catalogue: Catalogue, unit_size: int
) -> tuple[list[job_pb2.TaskPlan], job_pb2.Receipt]:
    """The tasks that the import has rows for, each with only those rows, and the model that answered.

    Raises InvalidRequestError and DataError as `Catalogue.plan`, and what the store raises.
    """
    found = await store.run(spec.reuse.import_id)
    wanted = set(spec.suite.tasks)
    names = sorted(task.task for task in found.tasks if not wanted or task.task in wanted)
    mode = spec.mode or suite_pb2.MODE_GENERATE
    work = job_pb2.SuiteWork()
    work.CopyFrom(spec.suite)
    work.tasks[:] = names
    if found.run.tool == IMPORTED:
        return await _plan_found(spec, found.run, work, store, catalogue, unit_size)
    rows = {name: await store.rows(spec.reuse.import_id, name) for name in names}
    items = {task: there.items for task, there in rows.items()}
    tasks = await catalogue.apart(
        spec.suite.suite, catalogue.plan, work, mode, unit_size, items, Layer.asked(spec.reading)
    )
    if not any(task.items for task in tasks):
        raise InvalidRequestError(
            f"No row of the import is in this installation's data of {spec.suite.suite}. Give the evaluators the "
            "data that the log was made with.",
            "reuse.import_id",
        )
    await catalogue.apart(spec.suite.suite, _tell_prompts, spec, found.run, rows, tasks, catalogue)
    return tasks, _receipt(spec, found.run)


async def plan_rows(
    spec: job_pb2.JobSpec, store: ImportStore, task: DatasetTask, unit_size: int
) -> tuple[list[job_pb2.TaskPlan], job_pb2.Receipt]:
    """The same for a job over a dataset. Raises as `plan`."""
    datasets.check_mode(spec)
    imported = await store.run(spec.reuse.import_id)
    found = await find(store, spec.reuse.import_id, task.info.task, task)
    _require_some([found], task.name)
    planned = await datasets.plan(spec, task.only(list(found.answers)), unit_size, None)
    planned.prompt_hash = found.prompt_hash or planned.prompt_hash
    return [planned], _receipt_found(spec, imported.run, [found])


async def _plan_found(
    spec: job_pb2.JobSpec,
    run: ImportedRun,
    work: job_pb2.SuiteWork,
    store: ImportStore,
    catalogue: Catalogue,
    unit_size: int,
) -> tuple[list[job_pb2.TaskPlan], job_pb2.Receipt]:
    """For answers that identify their item by an id or a text."""
    found: dict[str, Found] = {}
    for name in work.tasks:
        task = catalogue.task_of(spec, name)
        found[name] = await find(store, spec.reuse.import_id, name, task)
    _require_some(list(found.values()), work.suite)
    items = {name: list(each.answers) for name, each in found.items()}
    tasks = await catalogue.apart(
        spec.suite.suite, catalogue.plan, work, spec.mode, unit_size, items, Layer.asked(spec.reading)
    )
    for planned in tasks:
        planned.prompt_hash = found[planned.task].prompt_hash or planned.prompt_hash
    return tasks, _receipt_found(spec, run, list(found.values()))


def _require_some(found: Sequence[Found], name: str) -> None:
    """Raises InvalidRequestError."""
    if not any(each.answers for each in found):
        raise InvalidRequestError(
            f"No line of the import matches an item of {name}. The first line has "
            f"{found[0].counts.unmatched_example}. Give each line the item's id, or its question exactly as in the "
            "data.",
            "reuse.import_id",
        )


def _receipt_found(spec: job_pb2.JobSpec, run: ImportedRun, found: Sequence[Found]) -> job_pb2.Receipt:
    receipt = _receipt(spec, run)
    for each in found:
        receipt.import_counts.answers += each.counts.answers
        receipt.import_counts.unmatched += each.counts.unmatched
        receipt.import_counts.repeated += each.counts.repeated
    receipt.import_counts.unmatched_example = next(filter(None, (one.counts.unmatched_example for one in found)), "")
    return receipt


def _receipt(spec: job_pb2.JobSpec, run: ImportedRun) -> job_pb2.Receipt:
    return job_pb2.Receipt(
        endpoint_kind=run.tool,
        server=f"{run.tool} {run.tool_version}".rstrip(),
        software=services.__version__,
        parameters=run.parameters,
        template=run.template,
    )


def _tell_prompts(
    spec: job_pb2.JobSpec,
    run: ImportedRun,
    rows: Mapping[str, ImportedRows],
    plans: list[job_pb2.TaskPlan],
    catalogue: Catalogue,
) -> None:
    """Keeps our prompt's hash if every item was asked as we ask it: only then is the run comparable with ours."""
    for planned in plans:
        there = rows[planned.task]
        task = catalogue.task_of(spec, planned.task)
        selection = catalogue.chosen(task, there.items)
        theirs = dict(zip(there.items, there.prompts, strict=True))
        if all(prompts_of(item) == theirs[item.index] for item in task.items(selection.indexes)):
            continue
        own = (
            run.prompt_hashes.get(planned.task, "")
            or hashlib.sha256(f"{run.tool}:{run.digest}:{planned.task}".encode()).hexdigest()
        )
        planned.prompt_hash = own[:_HASH_DIGITS]
        log.info("%s: the prompts differ from Touchstone's; they are those of %s", planned.task, run.tool)
