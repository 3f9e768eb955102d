"""Experiments as Airflow's tasks. A task that waits for jobs is deferred: no worker slot is held, and the trigger knows
the experiment's name alone, so a restart of the triggerer does not end the wait.

This file belongs into Airflow's folder of plug-ins, from where scheduler, workers and triggerer import it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from airflow.configuration import AIRFLOW_HOME
from airflow.sdk import BaseHook, BaseOperator, Variable
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException
from airflow.triggers.base import BaseTrigger, TriggerEvent
from google.protobuf import json_format

from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client import (
    AsyncClient,
    Client,
    ClientError,
    InvalidError,
    LimitError,
    RefusedError,
    Settings,
    UnreachableError,
    documents,
)
from touchstone_client.command.bench.board import report_of
from touchstone_client.command.bench.people import to_rate
from touchstone_client.command.printing.output import plain
from touchstone_client.command.reports.watching_several import failures

CONNECTION = "touchstone"
FOLDER = "touchstone_bench_dir"
"""The variable of Airflow that names the folder of files for people."""
_SCHEDULER_PORT, _RESULTS_PORT = 8051, 8052
_LISTED_S = 60.0
"""Within this time the results service lists a new job."""
_AWAY_S, _LOOK_S = 30.0, 2.0
_UNSTARTED_S = 600.0
"""How long judges may start late while none runs."""


# -- where Touchstone is -------------------------------------------------------------------------------------------


def settings_of(connection: Any) -> Settings:
    """From the connection `touchstone`, or from the environment if there is none."""
    if connection is None:
        return Settings.from_env()
    more = connection.extra_dejson
    host = connection.host or "127.0.0.1"
    return Settings(
        scheduler=f"{host}:{connection.port or _SCHEDULER_PORT}",
        results=more.get("results") or f"{host}:{_RESULTS_PORT}",
        token=connection.password or "",
        tls_ca=more.get("tls_ca", ""),
        tls_client_cert=more.get("tls_client_cert", ""),
        tls_client_key=more.get("tls_client_key", ""),
    )


@contextmanager
def _touchstone() -> Iterator[Client]:
    """A client whose errors end the task: at once where the same call would be refused again."""
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        connection = None
    try:
        with Client(settings_of(connection)) as client:
            yield client
    except ClientError as error:
        final = isinstance(error, RefusedError) and not isinstance(error, LimitError)
        raise (AirflowFailException if final else AirflowException)(_sentences(error)) from error


def _sentences(error: ClientError) -> str:
    if isinstance(error, InvalidError) and error.problems:
        return " ".join(sentence for _, sentence in error.problems)
    return error.message


# -- waiting -------------------------------------------------------------------------------------------------------


class AnswersTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires once no job of an experiment waits or runs, and says why jobs failed."""

    def __init__(self, experiment: str) -> None:
        super().__init__()
        self.experiment = experiment

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"experiment": self.experiment}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        problems: list[str] | None = None
        while problems is None:
            try:
                async with AsyncClient(await self._settings()) as client:
                    problems = await self.problems(client)
            except UnreachableError as error:
                # It may be restarted, or moved.
                self.log.warning("%s Trying again in %g s.", error.message, _AWAY_S)
                await asyncio.sleep(_AWAY_S)
            except ClientError as error:
                problems = [_sentences(error)]
        yield TriggerEvent({"experiment": self.experiment, "problems": problems})

    async def _settings(self) -> Settings:
        try:
            return settings_of(await BaseHook.aget_connection(CONNECTION))
        except AirflowNotFoundException:
            return settings_of(None)

    async def problems(self, client: AsyncClient) -> list[str]:
        """What went wrong, once everything has ended. Raises ClientError."""
        jobs = (await client.experiment(self.experiment)).experiment.jobs
        return _told([await client.wait(job.job_id) for job in jobs])


class JudgesTrigger(AnswersTrigger):
    """Fires once the judges that an experiment names have ended, and says why some failed."""

    async def problems(self, client: AsyncClient) -> list[str]:
        idle_s = 0.0
        before: list[str] = []
        while True:
            judging: list[job_pb2.Job] = []
            unstarted: list[str] = []
            for job in (await client.experiment(self.experiment)).experiment.jobs:
                found, missing = started(job, await client.judges(job.job_id))
                judging += found
                unstarted += [f"Judge {judge.model} of job {job.job_id} has not started." for judge in missing]
            last = [await client.wait(job.job_id) for job in judging]
            if not unstarted:
                return _told(last)
            # The time of judges that run does not count: others may wait for them.
            idle_s = idle_s + _LOOK_S if unstarted == before else 0.0
            if idle_s > _UNSTARTED_S:
                return [*_told(last), *unstarted, "The jobs' logs say why."]
            before = unstarted
            await asyncio.sleep(_LOOK_S)


def started(
    job: job_pb2.Job, judges: list[results_service_pb2.JudgeRun]
) -> tuple[list[job_pb2.Job], list[job_pb2.Judge]]:
    """The jobs of the judges that a job names, of its present attempt, and the judges without one."""
    known = [run.job for run in judges if run.job.spec.judging.attempt == job.attempt]
    found, missing = [], []
    for judge in job.spec.judges:
        its = [one for one in known if (one.spec.endpoint, one.spec.model) == (judge.endpoint, judge.model)]
        if its:
            found.append(its[0])
            known.remove(its[0])
        else:
            missing.append(judge)
    return found, missing


def _told(jobs: list[job_pb2.Job]) -> list[str]:
    return [f"{name}: {reason}" for name, reason in failures(jobs)]


# -- the tasks -----------------------------------------------------------------------------------------------------


class Collect(BaseOperator):  # type: ignore[misc]
    """Starts the experiment that the run's parameters define, or continues it, and waits for its jobs. Returns its
    name. Run again, the task asks for what is missing."""

    def execute(self, context: Any) -> None:
        name = f"tip-bench-{context['dag_run'].run_after:%Y-%m-%d}"
        definition, judges = asked(context["params"], name)
        with _touchstone() as client:
            made = client.run_experiment(definition, judges=[_judge(client, one) for one in judges])
            self.log.info(
                "Experiment %s: %d jobs, %d cells, %d questions.",
                *(made.experiment, len(made.jobs), made.cells, made.calls),
            )
            _await_listed(client, made)
        self.defer(trigger=AnswersTrigger(made.experiment), method_name="ended")

    def ended(self, context: Any, event: dict[str, Any]) -> str:
        if event["problems"]:
            raise AirflowException(" ".join(event["problems"]))
        return str(event["experiment"])


def asked(params: Mapping[str, Any], name: str) -> tuple[dict[str, Any], list[Any]]:
    """The definition and the judges in a run's parameters; `name` is for an experiment without one."""
    definition = {key: value for key, value in params.items() if value not in (None, "")}
    judges = definition.pop("judges", [])
    if not definition.keys() & {"name", "experiment"}:
        definition["experiment"] = name
    return definition, judges


def _judge(client: Client, judge: str | dict[str, Any]) -> job_pb2.Judge:
    """A judge from `model`, `model@endpoint`, or an object with the fields of touchstone.v1.Judge."""
    if isinstance(judge, str):
        (target,) = client.targets([judge])
        return job_pb2.Judge(endpoint=target.endpoint, model=target.model)
    try:
        return json_format.ParseDict(judge, job_pb2.Judge())
    except json_format.ParseError as error:
        raise AirflowFailException(f"A judge is wrong: {error}") from error


def _await_listed(client: Client, made: scheduler_service_pb2.RunExperimentResponse) -> None:
    """The trigger asks the results service for the jobs, which hears of new ones a moment later."""
    wanted = {job.job_id for job in made.jobs}
    until = time.monotonic() + _LISTED_S
    while not wanted <= {job.job_id for job in client.experiment(made.experiment).experiment.jobs}:
        if time.monotonic() > until:
            raise AirflowException(f"The results service does not list all jobs of {made.experiment} yet.")
        time.sleep(_LOOK_S / 4)


class ExportForJudge(BaseOperator):  # type: ignore[misc]
    """Writes the answers that the client's user has not rated to a file for people. Returns its path."""

    template_fields = ("experiment",)

    def __init__(self, experiment: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment = experiment

    def execute(self, context: Any) -> str:
        folder = Path(Variable.get(FOLDER, None) or Path(AIRFLOW_HOME, "touchstone"))
        folder.mkdir(parents=True, exist_ok=True)
        with _touchstone() as client:
            found = to_rate(client, self.experiment)
        path = next(path for path in _names(folder, self.experiment) if not path.exists())
        found.write(path)
        self.log.info("%d answers to rate in %s.", found.answers, path)
        return str(path)


def _names(folder: Path, experiment: str) -> Iterator[Path]:
    """An earlier file stays: people may have filled it in."""
    yield folder / f"{experiment}.json"
    for number in count(2):
        yield folder / f"{experiment}-{number}.json"


class Compare(BaseOperator):  # type: ignore[misc]
    """Waits for the judges of the experiment, logs its leaderboard and returns it."""

    template_fields = ("experiment",)

    def __init__(self, experiment: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment = experiment

    def execute(self, context: Any) -> dict[str, Any]:
        with _touchstone() as client:
            judged = any(job.spec.judges for job in client.experiment(self.experiment).experiment.jobs)
        if judged:
            self.defer(trigger=JudgesTrigger(self.experiment), method_name="ended")
        return self._board(self.experiment)

    def ended(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        if event["problems"]:
            # The experiment does not start judges again.
            raise AirflowFailException(" ".join(event["problems"]))
        return self._board(event["experiment"])

    def _board(self, experiment: str) -> dict[str, Any]:
        with _touchstone() as client:
            board = client.experiment(experiment)
        self.log.info("%s\n%s", experiment, plain(report_of(board)))
        return documents.leaderboard(board)
