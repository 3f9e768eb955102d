"""The items of a reference run that a watch asks: those on which other models' runs differ most."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from services import further_fields
from services.errors import ConflictError
from services.results.decisions.answers import statistic_of
from services.results.runs import job_reads
from services.results.storage import archived_items
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words.jobs import mode_of, suite_of
from touchstone.v1 import job_pb2

_Key = tuple[str, int]
RUNS = 10
"""Runs that ask all canaries once. In that time the change has to be seen: each turn is tested alone."""
_MOST_CANARIES = 500
_MOST_KNOWN = 20
_EVEN = 2
"""Decimals of the spread that count: items that tell models apart about equally well are drawn at random."""


def choose(connection: Connection, watching: job_pb2.Watching, visible: Visibility = EVERYTHING) -> job_pb2.Watching:
    """The watch with its canaries, in the order in which they are asked.

    Raises NotFoundError as `job_reads.get_job`, ConflictError for answers that cannot be a reference.
    """
    reference = completed(connection, watching.reference_job_id, visible)
    if watching.again_job_id:
        _require_second(connection, reference, completed(connection, watching.again_job_id, visible))
    archived_items.require(connection, reference.job_id)
    known = connection.execute(
        query("watches/others"),
        {
            "suite": suite_of(reference.spec),
            "mode": int(mode_of(reference.spec)),
            "model": reference.spec.model,
            "most": _MOST_KNOWN,
            **visible.parameters,
        },
    ).fetchall()
    others = [job_id for (job_id,) in known]
    found = connection.execute(
        query("watches/reference"),
        {
            "reference": reference.job_id,
            "others": others,
            "tasks": [task.task for task in reference.plan if statistic_of(task) is not None],
        },
    ).fetchall()
    if not found:
        raise ConflictError(
            f"Job {reference.job_id} has no items with scores of their own, so its answers cannot be a reference. "
            "Choose a job whose items are right or wrong, or have scores."
        )
    spreads = {(task, item): spread for task, item, spread, _ in found}
    groups = {(task, item): (task, group) if group else (task, item) for task, item, _, group in found}
    used = len(others) if len(others) > 1 and any(spread is not None for spread in spreads.values()) else 0

    def place(key: tuple[str, int]) -> tuple[float, bytes]:
        drawn = hashlib.sha256(f"canary:{watching.seed}:{key[0]}:{key[1]}".encode()).digest()
        return (-round(spreads[key] or 0.0, _EVEN) if used else 0.0), drawn

    most = min(_MOST_CANARIES, RUNS * watching.items)
    chosen = job_pb2.Watching()
    chosen.CopyFrom(watching)
    del chosen.canaries[:]
    for task, item in _spread_over(groups, sorted(spreads, key=place))[:most]:
        chosen.canaries.add(task=task, item=item)
    chosen.total, chosen.known_runs = len(chosen.canaries), used
    return chosen


def _spread_over(groups: Mapping[_Key, Hashable], ordered: Sequence[_Key]) -> list[_Key]:
    """The first item of each group before any second one. Items that share a passage may change together by chance,
    while each canary counts as further evidence."""
    seen = Counter[Hashable]()
    ranks: dict[_Key, int] = {}
    for key in ordered:
        ranks[key] = seen[groups[key]]
        seen[groups[key]] += 1
    return sorted(ordered, key=ranks.__getitem__)


def _require_second(connection: Connection, reference: job_pb2.Job, again: job_pb2.Job) -> None:
    """Raises ConflictError for a job that does not show how much answers of the reference differ by chance."""
    if again.spec.model != reference.spec.model or suite_of(again.spec) != suite_of(reference.spec):
        raise ConflictError(
            f"Job {again.job_id} must have the model and the suite of the reference: it shows how much answers "
            "differ although nothing has changed. Name a second run of the reference's model."
        )
    if _asked(again.spec) != _asked(reference.spec):
        raise ConflictError(
            f"Job {again.job_id} must ask as the reference does, in the same mode, with the same parameters and number "
            "of answers per item. Name such a run, or none."
        )
    imported = again.spec.reuse.import_id
    pair = {"one": reference.job_id, "other": again.job_id}
    shared = first_row(connection, query("watches/shared_answers"), pair) is not None
    if shared or (imported and imported == reference.spec.reuse.import_id):
        raise ConflictError(
            f"Job {again.job_id} has answers of the reference, or of the job that the reference took its answers from. "
            "Name a run that asked again."
        )


def _asked(spec: job_pb2.JobSpec) -> tuple[object, ...]:
    """How items are asked, wherever. Another seed only makes answers differ more."""
    sampling = job_pb2.Sampling()
    sampling.CopyFrom(spec.sampling)
    sampling.ClearField("seed")
    # Jobs of an earlier version have them in another field.
    further_fields.write(sampling, further_fields.fields(spec.sampling))
    return mode_of(spec), sampling, spec.suite.shots, max(1, spec.suite.repeats)


def completed(connection: Connection, job_id: str, visible: Visibility = EVERYTHING) -> job_pb2.Job:
    """Raises NotFoundError, and ConflictError for a job that has not completed."""
    job = job_reads.get_job(connection, job_id, visible)
    if job.state != job_pb2.Job.STATE_COMPLETED or not job.plan:
        raise ConflictError(f"Job {job_id} has not completed. Name a completed job.")
    return job
