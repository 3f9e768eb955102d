"""What a request for a job refers to, read before the scheduler's lock is taken: reading may take long."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from services.errors import ConflictError, DeadlineError, InvalidRequestError, NotFoundError, UnavailableError
from services.rpc import Identity
from services.scheduler.admission import judging_rules
from services.scheduler.jobs import reuse
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.scheduler.requests.visibility import Reads
from services.words import refusals, replays
from services.words.jobs import ENDED_EARLY, is_import
from touchstone.v1 import dataset_pb2, job_pb2


@dataclass(frozen=True, slots=True)
class Context:
    """What a spec refers to: the job whose answers it takes, and its dataset if that exists."""

    source: job_pb2.Job | None
    dataset: dataset_pb2.Dataset | None


class Contexts:
    """Reads them for one registry."""

    def __init__(self, registry: JobRegistry, results: Results, reads: Reads) -> None:
        self._registry, self._results, self._reads = registry, results, reads

    async def with_rows(self, caller: Identity, spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
        """The spec; of a job that judges, over the rows that ask to judge. Raises NotFoundError, and ConflictError for
        a job whose answers cannot be judged."""
        if spec.HasField("judging"):
            judged = await self._completed(caller, spec.judging.job_id, "Judge its answers")
            # News of the attempt may not have reached the results service yet.
            spec.judging.attempt, spec.judging.against_attempt = judged.attempt, 0
            if spec.judging.against_job_id:
                other = await self._completed(caller, spec.judging.against_job_id, "Judge its answers")
                spec.judging.against_attempt = other.attempt
            judging_rules.fill_in(spec, await self._results.prepare_judging(spec.judging))
            spec.experiment_name = judged.spec.experiment_name
        return spec

    async def _completed(self, caller: Identity, job_id: str, remedy: str) -> job_pb2.Job:
        job = await self.any_age(job_id)
        self._reads.check(caller, job)
        if job.state != job_pb2.Job.STATE_COMPLETED:
            retry = " A retry runs the rest." if job.state in ENDED_EARLY else ""
            raise ConflictError(f"Job {job.job_id} has not completed. {remedy} once it has.{retry}")
        return job

    async def of(self, caller: Identity, spec: job_pb2.JobSpec) -> Context:
        """Raises NotFoundError for what does not exist, or is not visible, and ConflictError for answers that cannot be
        taken."""
        source = await self._source(caller, spec)
        # A job that takes a replay's answers is a replay, too, and ranks no more than that one.
        taken = source is not None and source.spec.replays_job_id == spec.replays_job_id
        if spec.replays_job_id and not taken:
            replays.check(spec, await self._completed(caller, spec.replays_job_id, "Replay it"))
        there = await self.dataset(spec)
        dataset = there if there is not None and self._reads.sees(caller, there.owner) else None
        return Context(source, dataset)

    async def dataset(self, spec: job_pb2.JobSpec) -> dataset_pb2.Dataset | None:
        """None also for a suite's job."""
        if spec.WhichOneof("work") != "dataset":
            return None
        manifest = await self._registry.datasets.get_manifest(spec.dataset.dataset_id)
        return manifest.dataset if manifest is not None and not manifest.deleting else None

    async def _source(self, caller: Identity, spec: job_pb2.JobSpec) -> job_pb2.Job | None:
        """The job whose answers are taken."""
        job_id = spec.reuse.job_id
        if is_import(spec):
            await self._check_import(caller, spec)
        if not job_id:
            return None
        source = await self.any_age(job_id)
        self._reads.check(caller, source)
        # While the results service is silent, the job may be queued: its answers are checked again when it runs.
        with suppress(UnavailableError, DeadlineError):
            result = await self._results.result(job_id)
            reuse.check_mark(job_id, result)
            reuse.check_kept(job_id, result.texts_dropped)
            reuse.check_rerun(spec.reuse, source, result)
        return source

    async def _check_import(self, caller: Identity, spec: job_pb2.JobSpec) -> None:
        """Raises NotFoundError also for an import that the caller may not see."""
        reuse.check_form(spec.reuse)
        found = await self._results.imported(spec.reuse.import_id)
        if not self._reads.sees(caller, found.owner):
            raise NotFoundError(refusals.not_found("Import", spec.reuse.import_id))
        reuse.check_import(spec, found)

    async def any_age(self, job_id: str) -> job_pb2.Job:
        """Raises NotFoundError."""
        if job_id in self._registry.jobs or job_id in self._registry.deleted:
            return self._registry.view(self._registry.find(job_id))
        return await self._results.job(job_id)


def clear_set(spec: job_pb2.JobSpec) -> None:
    """Removes what only jobs of experiments, decisions and watches have. Raises InvalidRequestError where that is not
    copied from one."""
    is_copy = spec.reuse.job_id or spec.HasField("judging")
    set_here = {descriptor.name for descriptor, _ in spec.ListFields()}
    for name in ("experiment_name", "max_model_b", "deciding"):
        if name in set_here and not is_copy:
            raise InvalidRequestError(f"{name} is set by the scheduler. Leave it out.", f"spec.{name}")
        spec.ClearField(name)
    # Another scoring of a watch's run has its items, too.
    if spec.HasField("watching") and not spec.reuse.job_id:
        raise InvalidRequestError("watching is set by the scheduler. Start a watch instead.", "spec.watching")
    for judge in spec.judges:
        judge.ClearField("max_model_b")
