"""A job's states, the words for them, and facts that follow from its spec. Pure."""

from __future__ import annotations

import re

from services.errors import InvalidRequestError
from services.words import refusals
from touchstone.v1 import job_pb2, metric_pb2, suite_pb2

RECORDED = "recorded"
"""Reserved endpoint name of jobs over recorded runs."""
MOST_AT_ONCE = 100
"""The most jobs of one request: their records fit into one atomic write."""
RUN_NAME = "^[A-Za-z0-9._-]{1,100}$"
"""The pattern of a recorded run's name."""
RUN_HEADER = "X-Touchstone-Run"
BUDGET_HEADER = "X-Touchstone-Budget-USD"
"""Of a recorded call: what the calls of its run may cost together."""
FINISHED = frozenset({job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED})
ENDED_EARLY = FINISHED - {job_pb2.Job.STATE_COMPLETED}
LIVE = frozenset(
    {
        job_pb2.Job.STATE_PENDING,
        job_pb2.Job.STATE_PLANNING,
        job_pb2.Job.STATE_RUNNING,
        job_pb2.Job.STATE_FINALIZING,
    }
)

_STATUS = {
    job_pb2.Job.STATE_UNSPECIFIED: "pending",
    job_pb2.Job.STATE_PENDING: "pending",
    job_pb2.Job.STATE_PLANNING: "running",
    job_pb2.Job.STATE_RUNNING: "running",
    job_pb2.Job.STATE_FINALIZING: "running",
    job_pb2.Job.STATE_COMPLETED: "completed",
    job_pb2.Job.STATE_FAILED: "failed",
    job_pb2.Job.STATE_CANCELLED: "cancelled",
}
STATUSES = tuple(dict.fromkeys(_STATUS.values()))
"""The REST API's words. A state that it calls running has a `current_step`."""
PHASES = ("pending", "running", "scoring", *STATUSES[2:])
"""The words of `stage_of`."""
WATCH_ALARM, DECISION_ENDED, DIGEST_WEEKLY = "watch.alarm", "decision.ended", "digest.weekly"
WEBHOOK_EVENTS = ("job.completed", "job.failed", "job.cancelled", WATCH_ALARM, DECISION_ENDED, DIGEST_WEEKLY)


def status_of(state: job_pb2.Job.State) -> str:
    """A state in a word of STATUSES; "unknown" for a state that this version does not know."""
    return _STATUS.get(state, "unknown")


def stage_of(job: job_pb2.Job) -> str:
    """The status of a job in a word. "scoring" instead of "running" once all of its items are done: such a job computes
    its metrics, and soon holds no slot."""
    progress = job.progress
    done = job.state == job_pb2.Job.STATE_RUNNING and 0 < progress.items_total <= progress.items_done
    return "scoring" if done or job.state == job_pb2.Job.STATE_FINALIZING else status_of(job.state)


def states_of(status: str) -> list[job_pb2.Job.State]:
    """The states behind a word of STATUSES."""
    return [state for state, word in _STATUS.items() if word == status and state != job_pb2.Job.STATE_UNSPECIFIED]


def state_name(state: job_pb2.Job.State) -> str:
    """The state itself in a word, e.g. "planning"."""
    return job_pb2.Job.State.Name(state).removeprefix("STATE_").lower()


def is_finished(job: job_pb2.Job) -> bool:
    return job.state in FINISHED


def can_retry(job: job_pb2.Job) -> bool:
    """Whether a finished job has items without an answer that it needs. Of a watch's run, failed calls do not count: if
    it ended again, it would count after later runs, and an alarm might go."""
    needed = job.incomplete and not is_watch_run(job.spec)
    return job.state in ENDED_EARLY or (job.state == job_pb2.Job.STATE_COMPLETED and needed)


def run_name_problem(name: str, field: str) -> str:
    """What is wrong with the name of a recorded run, as a sentence about `field`; empty when nothing is."""
    if re.fullmatch(RUN_NAME, name):
        return ""
    return f'{field} must have between 1 and 100 characters: letters, digits, ".", "_" and "-".'


def is_watch_run(spec: job_pb2.JobSpec) -> bool:
    """Whether a watch counts the job, unlike another scoring of its answers."""
    return spec.HasField("watching") and bool(spec.schedule_id)


def is_recorded(spec: job_pb2.JobSpec) -> bool:
    """Whether the answers are calls of a recorded run."""
    return spec.endpoint == RECORDED and bool(spec.reuse.import_id)


def is_rescore(spec: job_pb2.JobSpec) -> bool:
    """Whether another job's answers are scored again, without a call."""
    return bool(spec.reuse.job_id) and not spec.reuse.rerun


def is_import(spec: job_pb2.JobSpec) -> bool:
    """Whether answers that another tool collected are scored."""
    return bool(spec.reuse.import_id)


def takes_stored(reuse: job_pb2.Reuse, digest: str) -> bool:
    """Whether answers of any job are taken from a model with this digest, which is empty if it is unknown."""
    return reuse.any_job and bool(digest or reuse.without_digest)


def reused_without_digest(job: job_pb2.Job, result: metric_pb2.JobResult) -> bool:
    """Whether the job took stored answers that may come from an earlier version of the model."""
    unknown = job.spec.reuse.without_digest and not job.receipt.model_digest
    return unknown and result.items_reused > 0


def calls_nobody(spec: job_pb2.JobSpec) -> bool:
    """Whether every answer comes from the store, whether or not there is such an endpoint."""
    return is_rescore(spec) or is_import(spec)


def suite_of(spec: job_pb2.JobSpec) -> str:
    """The name that a job is listed under: a suite's name, a dataset's id, an experiment's name."""
    match spec.WhichOneof("work"):
        case "suite":
            return spec.suite.suite
        case "dataset":
            return spec.dataset.dataset_id
        case "experiment":
            return spec.experiment.experiment
    return ""


def work_of(spec: job_pb2.JobSpec) -> str:
    """What a job runs, as people know it: a dataset by its name."""
    return spec.dataset.name or suite_of(spec)


def items_of(job: job_pb2.Job) -> int:
    """Items that the job was planned to run; 0 before that."""
    return sum(plan.items for plan in job.plan)


def mode_of(spec: job_pb2.JobSpec) -> suite_pb2.Mode:
    """GENERATE where the spec does not say."""
    return spec.mode or suite_pb2.MODE_GENERATE


def require_project(project_id: int) -> None:
    """Of a filter. Raises InvalidRequestError."""
    if project_id < 0:
        raise InvalidRequestError(refusals.at_least("project_id", 0, zero="any project"), "project_id")


def asked_mode(mode: int) -> int:
    """The mode that a request names, GENERATE without one. Raises InvalidRequestError for an invalid number."""
    if mode not in suite_pb2.Mode.values():
        raise InvalidRequestError(refusals.MODE, "mode")
    return mode or int(suite_pb2.MODE_GENERATE)
