"""What a job's spec must satisfy before it is queued. Pure. Every message says what may be given instead."""

from __future__ import annotations

import re

from services import further
from services.bus import IMPORTED_ENDPOINTS
from services.errors import InvalidRequestError, NotFoundError, UnsupportedError
from services.scheduler import budget, dataset_jobs, reuse
from services.scheduler.fleet import Fleet
from services.scheduler.settings import Limits
from touchstone.v1 import dataset_pb2, endpoint_pb2, job_pb2, scoring_pb2, suite_pb2

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0.0, 2.0),
    ("top_p", 0.0, 1.0),
    ("top_k", 0, 100),
    ("max_tokens", 1, 1_000_000),
    ("context_length", 1, 10_000_000),
    ("repeat_penalty", 0.0, 2.0),
)
_BATCH_KINDS = ("openai", "gemini")
_MOST_SPEC_BYTES = 16 * 1024
"""Without labels. The spec travels with every unit and every audit event; a NATS message holds 1 MB."""
_MOST_LABELS, _MOST_LABEL_NAME, _MOST_LABEL = 16, 64, 512
_MOST_REPEATS = 64
_MOST_OPEN_SHOTS = 100
_OPEN_TASK = re.compile(r"[a-zA-Z0-9_.-]{1,100}")


def require_project(project_id: int) -> None:
    """Of a list's filter. Raises InvalidRequestError."""
    if project_id < 0:
        raise InvalidRequestError("project_id may be 0 (any) or more.", "project_id")


def usual_priority(spec: job_pb2.JobSpec) -> job_pb2.Priority:
    """What a job gets that asks for none: high for suites, which somebody waits for, normal for batches."""
    return job_pb2.PRIORITY_HIGH if spec.WhichOneof("work") == "suite" else job_pb2.PRIORITY_NORMAL


def validate(
    spec: job_pb2.JobSpec,
    fleet: Fleet,
    limits: Limits,
    now: float,
    source: job_pb2.Job | None = None,
    dataset: dataset_pb2.Dataset | None = None,
) -> job_pb2.JobSpec:
    """The spec with its defaults filled in. `source` is the job that `spec.reuse` names, `dataset` the one that the
    spec names, where there is such a one.

    Raises InvalidRequestError, UnsupportedError, NotFoundError for a dataset that is not there, or ConflictError for a
    source that has no answers to take.
    """
    full = job_pb2.JobSpec()
    full.CopyFrom(spec)
    if not full.model or len(full.model) > 300 or not full.model.isprintable():
        raise InvalidRequestError("Name a model of the endpoint, at most 300 characters.", "spec.model")
    for name, low, high in _RANGES:
        value = getattr(full.sampling, name)
        # Written so that NaN fails, too.
        if full.sampling.HasField(name) and not low <= value <= high:
            raise InvalidRequestError(
                f"{name} is {value:,.12g}; it may be {low:,.12g} to {high:,.12g}.", f"spec.sampling.{name}"
            )
    _further(full)
    _labels(full)
    if (size := _size(full)) > _MOST_SPEC_BYTES:
        raise InvalidRequestError(
            f"The job's description has {size:,} bytes; it may have {_MOST_SPEC_BYTES:,}. "
            "Shorten sampling.extra_json or the list of tasks.",
            "spec",
        )
    longest = limits.batch_time_s if full.provider_batch else limits.job_time_s
    if not 0 <= full.time_limit_s <= longest:
        raise InvalidRequestError(f"time_limit_s may be 0 to {longest}.", "spec.time_limit_s")
    full.time_limit_s = full.time_limit_s or longest
    full.mode = full.mode or suite_pb2.MODE_GENERATE
    if full.mode not in suite_pb2.Mode.values():
        raise InvalidRequestError("mode may be generate or loglikelihood.", "spec.mode")
    if full.project_id < 0:
        raise InvalidRequestError("project_id may be 0 (none) or more.", "spec.project_id")
    if full.mode == suite_pb2.MODE_LOGLIKELIHOOD and not full.reuse.job_id:
        _nothing_is_sampled(full)
    work = full.WhichOneof("work")
    if work is None:
        raise InvalidRequestError("Say what to run: set suite or dataset.", "spec.work")
    if work not in ("suite", "dataset"):
        raise UnsupportedError(f"This installation runs suites and datasets; {work} jobs are not available in it.")
    full.priority = full.priority or usual_priority(full)
    if full.priority not in job_pb2.Priority.values():
        raise InvalidRequestError("priority may be low, normal or high.", "spec.priority")
    reuse.check_form(full.reuse)
    if full.provider_batch and (work != "dataset" or reuse.calls_nobody(full)):
        raise InvalidRequestError(
            "provider_batch is for datasets whose rows are asked. Leave it out.", "spec.provider_batch"
        )
    if full.reading not in scoring_pb2.Reading.values():
        raise InvalidRequestError("reading may be strict, marked or lenient.", "spec.reading")
    if full.reading and full.mode == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError(
            "reading has no meaning in loglikelihood mode, where no answer is read. Leave it out.", "spec.reading"
        )
    if work == "dataset":
        # Imported answers are no requests.
        dataset_jobs.fill_in(full, dataset, 0 if reuse.is_import(full) else limits.requests_per_job)
    if source is not None:
        reuse.check_source(full, source)
    if reuse.is_import(full):
        _imported(full)
    # Of what calls nobody the endpoint may be gone, and the answers are there whatever it can do now.
    if not reuse.calls_nobody(full):
        _endpoint(full, fleet, now)
    if work == "suite":
        _suite(full, fleet, now)
    budget.check_form(full, dataset)
    return full


def _further(spec: job_pb2.JobSpec) -> None:
    """Writes the further fields anew, so that what is kept is what was checked, and nothing of an earlier version."""
    field = "spec.sampling.extra_json"
    try:
        values = further.parse(spec.sampling.extra_json) if spec.sampling.extra_json else further.fields(spec.sampling)
        further.write(spec.sampling, values)
    except ValueError as error:
        raise InvalidRequestError(f"sampling.extra_json {error}.", field) from error
    # What takes another job's answers has to ask as that one did.
    if (name := further.asks_logprobs(values)) and not spec.reuse.job_id:
        raise InvalidRequestError(f"sampling.extra_json.{name} {further.NO_LOGPROBS}", field)


def _size(spec: job_pb2.JobSpec) -> int:
    return spec.ByteSize() - job_pb2.JobSpec(labels=spec.labels).ByteSize()


def _labels(spec: job_pb2.JobSpec) -> None:
    labels = spec.labels
    if len(labels) > _MOST_LABELS:
        raise InvalidRequestError(f"The job has {len(labels)} labels; it may have {_MOST_LABELS}.", "spec.labels")
    for name, value in labels.items():
        if not (0 < len(name) <= _MOST_LABEL_NAME and name.isprintable()):
            raise InvalidRequestError(
                f"A label's name may have 1 to {_MOST_LABEL_NAME} printable characters.", "spec.labels"
            )
        if len(value) > _MOST_LABEL or not all(char.isprintable() or char in "\n\t" for char in value):
            raise InvalidRequestError(
                f"Label {name!r} may have {_MOST_LABEL} printable characters.", f"spec.labels.{name}"
            )


def _imported(spec: job_pb2.JobSpec) -> None:
    """Other tools' answers never pass for those of an endpoint here."""
    if spec.endpoint not in IMPORTED_ENDPOINTS:
        raise InvalidRequestError(
            f"endpoint of imported answers is the tool that collected them: {' or '.join(IMPORTED_ENDPOINTS)}.",
            "spec.endpoint",
        )


def _nothing_is_sampled(spec: job_pb2.JobSpec) -> None:
    set_ = [field.name for field, _ in spec.sampling.ListFields() if field.name not in further.FIELDS]
    if set_ or spec.stream:
        raise InvalidRequestError(
            f"{', '.join(set_) or 'stream'} has no meaning in loglikelihood mode, where nothing is generated. Leave it "
            "out.",
            f"spec.sampling.{set_[0]}" if set_ else "spec.stream",
        )


def _endpoint(spec: job_pb2.JobSpec, fleet: Fleet, now: float) -> None:
    try:
        endpoint = fleet.endpoint(spec.endpoint, now)
    except NotFoundError as error:
        raise InvalidRequestError(error.message, "spec.endpoint") from error
    if spec.provider_batch and endpoint.kind not in _BATCH_KINDS:
        raise InvalidRequestError(
            f"{spec.endpoint} is of kind {endpoint.kind}, whose batch API Touchstone does not speak. Choose an "
            f"endpoint of kind {' or '.join(_BATCH_KINDS)}, or leave provider_batch out.",
            "spec.provider_batch",
        )
    model = next((known for known in endpoint.models if known.model == spec.model), endpoint_pb2.Model())
    own = model.capabilities.HasField("loglikelihood")
    known = model.capabilities if own else endpoint.capabilities
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD and known.HasField("loglikelihood") and not known.loglikelihood:
        who = f"{model.model} at {spec.endpoint}" if own else spec.endpoint
        raise InvalidRequestError(
            f"{who} does not give log-likelihoods of given texts. Choose mode generate, or an endpoint that gives "
            "them, such as vLLM.",
            "spec.mode",
        )
    if spec.budget_usd and model.model:
        budget.check_prices(spec, model)
    if spec.reuse.any_job and model.model and not model.digest:
        raise InvalidRequestError(no_digest(spec.endpoint, spec.model), "spec.reuse.any_job")


def no_digest(endpoint: str, model: str) -> str:
    """Why other jobs' answers cannot be taken."""
    return (
        f"{endpoint} does not tell which weights are behind {model}, so answers of other jobs may be another model's. "
        "Run without reuse.any_job."
    )


def _suite(spec: job_pb2.JobSpec, fleet: Fleet, now: float) -> None:
    work = spec.suite
    name, colon, open_task = work.suite.partition(":")
    suite = fleet.suite(name, now)
    if work.limit < 0:
        raise InvalidRequestError("limit may be 0 (all items) or more.", "spec.suite.limit")
    if not 0 <= work.repeats <= _MOST_REPEATS:
        raise InvalidRequestError(f"repeats may be 0 to {_MOST_REPEATS} answers per item.", "spec.suite.repeats")
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD and work.repeats > 1:
        raise InvalidRequestError(
            "A log-likelihood is the same each time it is asked for; repeats may be 0 or 1.", "spec.suite.repeats"
        )
    if suite.open:
        _open(work, open_task)
        if spec.reading:
            raise InvalidRequestError(
                f"Tasks of {name} read answers by filters of their own. Leave reading out.", "spec.reading"
            )
        return
    if colon:
        raise InvalidRequestError(
            f"{suite.title} takes no task in its name. Name tasks in tasks, and {name} as suite.", "spec.suite.suite"
        )
    tasks = {task.task: task for task in suite.tasks}
    for task_name in work.tasks:
        if task_name not in tasks:
            listed = ", ".join(tasks)
            raise InvalidRequestError(f"{suite.title} has no task {task_name!r}. Tasks: {listed}.", "spec.suite.tasks")
    if len(set(work.tasks)) != len(work.tasks):
        raise InvalidRequestError("A task is named twice.", "spec.suite.tasks")
    if work.shots < 0:
        raise InvalidRequestError("shots may be 0 or more.", "spec.suite.shots")
    # What cannot run as asked is left out when the job is planned. With nothing left, the first one says why.
    wanted = [tasks[task_name] for task_name in work.tasks or tasks]
    misfits = [why for task in wanted if (why := _misfit(task, spec))]
    if misfits and len(misfits) == len(wanted):
        raise misfits[0]


def _misfit(task: suite_pb2.TaskInfo, spec: job_pb2.JobSpec) -> InvalidRequestError | None:
    """Why a task cannot run as asked."""
    if spec.mode not in task.modes:
        mode = suite_pb2.Mode.Name(spec.mode).removeprefix("MODE_").lower()
        return InvalidRequestError(f"{task.title} cannot run in {mode} mode.", "spec.mode")
    if spec.suite.shots > task.max_shots:
        return InvalidRequestError(f"{task.title} takes 0 to {task.max_shots} shots.", "spec.suite.shots")
    return None


def _open(work: job_pb2.SuiteWork, task: str) -> None:
    """A task of an open suite is checked here by its form, and by the evaluator that plans it for the rest."""
    suite = work.suite.partition(":")[0]
    if not _OPEN_TASK.fullmatch(task):
        raise InvalidRequestError(
            f"Name a task of {suite} as {suite}:<task>, with up to 100 letters, digits, _, . and -.", "spec.suite.suite"
        )
    if work.tasks and list(work.tasks) != [task]:
        raise InvalidRequestError(f"{work.suite} is one task; leave tasks out.", "spec.suite.tasks")
    if not 0 <= work.shots <= _MOST_OPEN_SHOTS:
        raise InvalidRequestError(f"shots may be 0 to {_MOST_OPEN_SHOTS}.", "spec.suite.shots")
