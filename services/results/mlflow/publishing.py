"""Keeps an MLflow server up to date with completed jobs, whatever happens to it meanwhile.

The table mlflow_jobs says what the server got of each job. Each run there bears the place of its answer and a
digest of what it says, written last. So what a crash or an outage cut off is found on the server and completed, and no
answer has two runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

from services.bus import of_job
from services.errors import NotFoundError, TouchstoneError
from services.results.experiments import runs as experiment_runs
from services.results.experiments import stored
from services.results.mlflow import cells, whole_jobs
from services.results.mlflow.client import Mlflow, MlflowError, Record, Run
from services.results.mlflow.settings import ALL, MlflowSettings
from services.results.runs import job_reads
from services.results.storage.database import Connection, Database, query
from touchstone.v1 import results_service_pb2 as pb

log = logging.getLogger(__name__)

JOB, PLACE, DIGEST = "touchstone.job_id", "touchstone.place", "touchstone.digest"
"""Tags of every run."""
LOOK_S, _LONGEST_S = 2.0, 300.0
_AT_ONCE = 8
_JOBS_A_LOOK = 20
_RUNS_A_PAGE = 100


class Publishing:
    """One database's jobs on one server."""

    def __init__(self, database: Database, settings: MlflowSettings) -> None:
        self._database, self._settings = database, settings
        self._refused: set[tuple[str, str]] = set()
        """Jobs and their signatures that the server refuses for what they say. A restart tries them again."""

    async def run(self) -> None:
        """Until cancelled."""
        if not self._settings.url:
            await asyncio.Event().wait()
        seen, wait_s = -1, LOOK_S
        while True:
            version = self._database.version
            if version != seen:
                try:
                    if await self.look():
                        # There may be more.
                        version = -1
                    if wait_s > LOOK_S:
                        log.info("MLflow answers again")
                    seen, wait_s = version, LOOK_S
                except MlflowError as error:
                    if wait_s == LOOK_S:
                        log.warning("%s Jobs go on, and MLflow gets them later.", error.message)
                    wait_s = min(2 * wait_s, _LONGEST_S)
                except TouchstoneError as error:
                    log.warning("sending jobs to MLflow is delayed: %s", error.message)
                    wait_s = min(2 * wait_s, _LONGEST_S)
            await asyncio.sleep(wait_s)

    async def look(self) -> bool:
        """Sends some jobs. Whether there were any. Raises MlflowError if the server cannot take them at present."""
        due = await self._database.read_long(partial(_due, everything=self._settings.runs == ALL))
        due = [one for one in due if one not in self._refused][:_JOBS_A_LOOK]
        if not due:
            return False
        async with Mlflow(self._settings) as server:
            for job_id, signature in due:
                try:
                    await self._send(server, job_id)
                except (MlflowError, NotFoundError) as error:
                    if isinstance(error, MlflowError) and error.passes:
                        raise
                    self._refused.add((job_id, signature))
                    log.warning("job %s: not sent to MLflow: %s", job_id, error.message, extra=of_job(job_id))
                    continue
                now = datetime.now(UTC).replace(tzinfo=None)
                await self._database.write(partial(_note, job_id=job_id, signature=signature, now=now), of_jobs=False)
        return True

    async def _send(self, server: Mlflow, job_id: str) -> None:
        job = await self._database.read(partial(job_reads.get_job, job_id=job_id))
        name = job.spec.experiment_name
        if not name and self._settings.runs != ALL:
            return  # Somebody's own job over the rows of an experiment.
        if not name:
            result = await self._database.read_long(partial(job_reads.get_job_result, job_id=job_id))
            place = await server.experiment(whole_jobs.experiment_name(job))
            known = await _known(server, place, job_id)
            await _one(server, place, job_id, known, "", whole_jobs.record(job, result))
            return
        began = time.monotonic()
        place = await server.experiment(name)
        known = await _known(server, place, job_id)
        experiment = (await self._database.read(lambda c: stored.find(c, name))).message()
        request = pb.ListExperimentRunsRequest(name=name, job_id=job_id, page_size=_RUNS_A_PAGE)
        room = asyncio.Semaphore(_AT_ONCE)

        async def send(run: pb.ExperimentRun, prompt: str) -> None:
            async with room:
                record = cells.record(experiment, job, run, prompt)
                await _one(server, place, job_id, known, f"{run.task}/{run.item}/{run.repeat}", record)

        while True:
            page, prompts = await self._database.read_long(partial(_page, request=request))
            await _all(send(run, prompts.get(run.item, "")) for run in page.runs if run.outcome)
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        log.info("job %s: sent to MLflow in %.1f s", job_id, time.monotonic() - began, extra=of_job(job_id))


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Raises the first error once all have ended."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def _known(server: Mlflow, experiment_id: str, job_id: str) -> dict[str, Run]:
    """The job's runs that the server has, by their place."""
    return {run.tags.get(PLACE, ""): run async for run in server.runs(experiment_id, JOB, job_id)}


async def _one(
    server: Mlflow, experiment_id: str, job_id: str, known: dict[str, Run], place: str, record: Record
) -> None:
    digest = sha256(json.dumps(asdict(record), sort_keys=True).encode("utf-8", "replace")).hexdigest()
    run = known.get(place)
    if run is None:
        run = await server.start(experiment_id, record, {JOB: job_id, PLACE: place})
    elif run.tags.get(DIGEST) == digest:
        return
    await server.write(run, record, {DIGEST: digest})


def _due(connection: Connection, everything: bool) -> list[tuple[str, str]]:
    """Jobs with the signature of what is known of them now, of which the server got less; the newest first."""
    return connection.execute(query("mlflow/due"), {"everything": everything}).fetchall()


def _note(connection: Connection, job_id: str, signature: str, now: datetime) -> None:
    connection.execute(
        "INSERT INTO mlflow_jobs VALUES ($job_id, $signature, $now) ON CONFLICT (job_id) DO UPDATE SET "
        "signature = excluded.signature, sent_at = excluded.sent_at",
        {"job_id": job_id, "signature": signature, "now": now},
    )


def _page(
    connection: Connection, request: pb.ListExperimentRunsRequest
) -> tuple[pb.ListExperimentRunsResponse, dict[int, str]]:
    """Answers, and what was sent for each."""
    page = experiment_runs.list_runs(connection, request)
    rows = connection.execute(
        "SELECT item, prompt FROM items WHERE job_id = $job_id AND repeat = 0 "
        "AND item IN (SELECT unnest($items::INTEGER[]))",
        {"job_id": request.job_id, "items": [run.item for run in page.runs]},
    ).fetchall()
    return page, dict(rows)
