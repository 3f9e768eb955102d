"""The run that the candidate is compared with. It is found before the candidate runs: afterwards the newest run of a
model may be the candidate itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from services.words.enums import mode_name
from services.words.jobs import items_of, suite_of
from services.words.refusals import counted
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone_client.client import Client
from touchstone_client.errors import InvalidError

_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_JOBS_READ = 2000
"""The most completed jobs of one model and suite that are searched."""

Configuration = results_service_pb2.Configuration


def find(client: Client, word: str, suite: str, mode: str, project_id: int) -> job_pb2.Job:
    """The job itself, or the run that represents a named model or configuration: the newest complete run of the whole
    suite, else the newest of those on the most items, as for the Compare call.

    Raises InvalidError for a name that fits no run or several configurations.
    """
    if _JOB_ID.fullmatch(word):
        job = client.job(word)
        _tell_of_whole_run(client, job, project_id)
        return job
    for choose in (_by_hash, _by_name, _by_model_at_endpoint, _by_model, _by_beginning):
        runs = _standing(client, choose(client, word), suite, mode, project_id)
        if len(runs) > 1:
            listed = "; ".join(
                f"{c} ({job.spec.model}@{job.spec.endpoint}, job {job.job_id})" for c, job in runs.items()
            )
            raise InvalidError.of(f"{word!r} fits several configurations: {listed}. Name one of them, or a job.")
        if runs:
            return next(iter(runs.values()))
    raise InvalidError.of(
        f"{word!r} has no complete run of {suite} in {mode} mode to compare with. Run it first, or name a job."
    )


def _by_hash(client: Client, word: str) -> Iterable[Configuration]:
    return (found for found in client.configurations() if found.configuration == word) if _is_hash(word) else ()


def _by_beginning(client: Client, word: str) -> Iterable[Configuration]:
    return (
        (found for found in client.configurations() if found.configuration.startswith(word)) if _is_hash(word) else ()
    )


def _is_hash(word: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8,64}", word) is not None


def _by_name(client: Client, word: str) -> Iterable[Configuration]:
    return (found for found in client.configurations(named=True) if word in (found.name, found.alias))


def _by_model_at_endpoint(client: Client, word: str) -> Iterable[Configuration]:
    model, at, endpoint = word.rpartition("@")
    return (found for found in client.configurations(model) if found.endpoint == endpoint) if at else ()


def _by_model(client: Client, word: str) -> Iterable[Configuration]:
    return client.configurations(word)


def _standing(
    client: Client, configurations: Iterable[Configuration], suite: str, mode: str, project_id: int
) -> dict[str, job_pb2.Job]:
    """The run that represents each configuration, among the complete ones that count; reports a newer, smaller one."""
    runs = {}
    for configuration, jobs in _complete(client, configurations, suite, mode, project_id).items():
        preferred = sorted(jobs, key=lambda job: (job.subset, -items_of(job) if job.subset else 0))
        standing = next((job for job in preferred if _counts(client, job)), None)
        if standing is None:
            continue
        runs[configuration] = standing
        newest = next(job for job in jobs if job.job_id == standing.job_id or _counts(client, job))
        if newest.job_id != standing.job_id:
            what = "the run with the most items" if standing.subset else "the newest full run"
            _tell(
                f"job {standing.job_id} is {what}, {items_of(standing):,}; job {newest.job_id} is newer and ran "
                f"{items_of(newest):,}."
            )
    return runs


def _complete(
    client: Client, configurations: Iterable[Configuration], suite: str, mode: str, project_id: int
) -> dict[str, list[job_pb2.Job]]:
    """Complete runs by configuration, newest first by their end."""
    wanted = {found.configuration: found.model for found in configurations}
    runs: dict[str, list[job_pb2.Job]] = {}
    for model in {*wanted.values()}:
        jobs = client.jobs(model=model, suite=suite, states=[job_pb2.Job.STATE_COMPLETED], project_id=project_id)
        for _, job in zip(range(_JOBS_READ), jobs, strict=False):
            configuration = job.receipt.configuration
            if wanted.get(configuration) == model and not job.incomplete and mode_name(job.spec.mode) == mode:
                runs.setdefault(configuration, []).append(job)
    for of_one in runs.values():
        of_one.sort(key=lambda job: job.finished_at.ToNanoseconds(), reverse=True)
    return runs


def _tell_of_whole_run(client: Client, job: job_pb2.Job, project_id: int) -> None:
    """A subset that was named by its job is used; the command says that there is a whole run."""
    if not job.subset or not job.receipt.configuration:
        return
    of_job = Configuration(configuration=job.receipt.configuration, model=job.spec.model)
    for jobs in _complete(client, [of_job], suite_of(job.spec), mode_name(job.spec.mode), project_id).values():
        whole = next((other for other in jobs if not other.subset and _counts(client, other)), None)
        if whole is not None:
            _tell(
                f"job {job.job_id} ran {counted(items_of(job), 'item')}; job {whole.job_id} is a full run of the same "
                f"configuration with {items_of(whole):,} items, but is not used."
            )


def _counts(client: Client, job: job_pb2.Job) -> bool:
    return not client.result(job.job_id).mark


def _tell(words: str) -> None:
    print(f"baseline: {words}", file=sys.stderr)
