"""What a job's spec must satisfy before it is queued. Pure. Every message says what is allowed instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from services import further_fields
from services.bus import IMPORTED_ENDPOINTS
from services.errors import InvalidRequestError, NotFoundError, UnsupportedError
from services.experiments.definition import KEEP_ALIVE
from services.scheduler.admission import dataset_rules, judging_rules
from services.scheduler.jobs import budget, reuse
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.settings import Limits
from services.words import refusals
from services.words.endpoints import named, no_key, no_model, not_taken
from services.words.enums import MODES
from services.words.fields import Choice, Number
from services.words.job_options import DATASET, LABELS, MOST_MODEL, SUITE, place_of
from services.words.jobs import calls_nobody, is_import, takes_stored
from services.words.sampling import PARAMETERS, further_problem
from touchstone.v1 import dataset_pb2, endpoint_pb2, job_pb2, suite_pb2

_BATCH_KINDS = ("openai", "gemini")
_MOST_SPEC_BYTES = 40 * 1024
"""Without labels. The spec travels with every unit and every audit event; a NATS message holds 1 MB."""
_STATE = endpoint_pb2.Endpoint.State
_OPEN_TASK = re.compile(r"[a-zA-Z0-9_.-]{1,100}")


def usual_priority(spec: job_pb2.JobSpec) -> job_pb2.Priority:
    """The default priority: high for suites, which somebody waits for, normal for batches."""
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
    spec names, if it exists.

    Raises InvalidRequestError, UnsupportedError, NotFoundError for a missing dataset, or ConflictError for a source
    without answers to take.
    """
    full = job_pb2.JobSpec()
    full.CopyFrom(spec)
    _check_model(full)
    work = _work_of(full)
    _fill_time_limit(full, limits)
    _check_declared(full)
    _write_further_fields(full)
    _check_labels(full)
    _check_size(full)
    full.mode = full.mode or suite_pb2.MODE_GENERATE
    full.priority = full.priority or usual_priority(full)
    if full.mode == suite_pb2.MODE_LOGLIKELIHOOD:
        _check_loglikelihood(full)
    reuse.check_form(full.reuse)
    _check_provider_batch(full)
    if work == "dataset":
        # Imported answers are not requests.
        most_rows = 0 if is_import(full) else limits.requests_per_job
        if dataset is not None:
            for name in (dataset_rules.scorer_of(full, dataset), *(one.scorer for one in full.dataset.further)):
                fleet.require_scorer(name, now)
        dataset_rules.fill_in(full, dataset, most_rows, fleet.scorers(now))
        fleet.require_one_plugin(full, now)
    if source is not None:
        reuse.check_source(full, source)
    if is_import(full):
        _check_import(full)
    # For a job without calls, the endpoint may be gone: the answers exist whatever it can do now.
    if not calls_nobody(full):
        _ask_in_its_form(full, fleet, now)
        _check_endpoint(full, fleet, now)
    check_judges(full.judges, fleet, now)
    if work == "suite":
        _check_suite(full, fleet, now)
    budget.check_form(full, dataset)
    return full


def _check_model(spec: job_pb2.JobSpec) -> None:
    if not spec.model or len(spec.model) > MOST_MODEL or not spec.model.isprintable():
        raise InvalidRequestError(f"Name a model of the endpoint, at most {MOST_MODEL} characters.", "spec.model")


def _work_of(spec: job_pb2.JobSpec) -> str:
    work: str | None = spec.WhichOneof("work")
    if work is None:
        raise InvalidRequestError("Say what to run: set suite or dataset.", "spec.work")
    if work not in ("suite", "dataset"):
        raise UnsupportedError(f"This installation runs suites and datasets; {work} jobs are not available in it.")
    return work


def _fill_time_limit(spec: job_pb2.JobSpec, limits: Limits) -> None:
    longest = limits.batch_time_s if spec.provider_batch else limits.job_time_s
    if not 0 <= spec.time_limit_s <= longest:
        field = "spec.time_limit_s"
        raise InvalidRequestError(refusals.between(field, 1, longest), field)
    spec.time_limit_s = spec.time_limit_s or longest


def _check_declared(spec: job_pb2.JobSpec) -> None:
    """Numbers and choices that are set. Without a value a field has its default."""
    if spec.mode not in suite_pb2.Mode.values():
        raise InvalidRequestError(refusals.not_valid(spec.mode, "spec.mode", MODES), "spec.mode")
    for declared in (*PARAMETERS.values(), *(SUITE if spec.HasField("suite") else DATASET).values()):
        part, field = place_of(spec, declared)
        given = {one.name: value for one, value in part.ListFields()}.get(declared.name)
        problem = ""
        if isinstance(declared, Number) and given is not None:
            problem = declared.problem(given, field)
        elif isinstance(declared, Choice) and given not in (None, *declared.words.values()):
            problem = refusals.not_valid(given, field, declared.words)
        if problem:
            raise InvalidRequestError(problem, field)


def _write_further_fields(spec: job_pb2.JobSpec) -> None:
    """Writes the further fields again, so that exactly the checked ones are stored, and nothing of an earlier
    version."""
    field = "spec.sampling.extra_json"
    try:
        values = (
            further_fields.parse(spec.sampling.extra_json)
            if spec.sampling.extra_json
            else further_fields.fields(spec.sampling)
        )
        further_fields.write(spec.sampling, values)
    except ValueError as error:
        raise InvalidRequestError(f"sampling.extra_json {error}.", field) from error
    # A job that takes another job's answers must have the same parameters.
    if (name := further_fields.asks_logprobs(values)) and not spec.reuse.job_id:
        raise InvalidRequestError(f"sampling.extra_json.{name} {further_fields.NO_LOGPROBS}", field)


def _check_size(spec: job_pb2.JobSpec) -> None:
    size = spec.ByteSize() - job_pb2.JobSpec(labels=spec.labels).ByteSize()
    if size > _MOST_SPEC_BYTES:
        raise InvalidRequestError(
            f"{refusals.too_large('The job', size, _MOST_SPEC_BYTES, 'bytes')} "
            "Shorten sampling.extra_json or the list of tasks.",
            "spec",
        )


def _check_labels(spec: job_pb2.JobSpec) -> None:
    field, limit = "spec.labels", LABELS
    if len(spec.labels) > limit.most:
        raise InvalidRequestError(refusals.too_large(field, len(spec.labels), limit.most, "entries"), field)
    for name, value in spec.labels.items():
        if not (0 < len(name) <= limit.longest_name and name.isprintable()):
            raise InvalidRequestError(
                f"A label's name must have between 1 and {limit.longest_name} printable characters.", field
            )
        if len(value) > limit.longest_text or not all(char.isprintable() or char in "\n\t" for char in value):
            raise InvalidRequestError(
                f"Label {name!r} must have at most {limit.longest_text} printable characters.", f"{field}.{name}"
            )


def _check_import(spec: job_pb2.JobSpec) -> None:
    """Other tools' answers never pass for those of an endpoint here."""
    if spec.endpoint not in IMPORTED_ENDPOINTS:
        raise InvalidRequestError(
            f"endpoint of imported answers is the tool that collected them: {' or '.join(IMPORTED_ENDPOINTS)}.",
            "spec.endpoint",
        )


def _check_loglikelihood(spec: job_pb2.JobSpec) -> None:
    """Nothing is generated in this mode, so options of generation are refused."""
    # A job that takes another job's answers must have the same parameters.
    if not spec.reuse.job_id:
        given = [one.name for one, _ in spec.sampling.ListFields() if one.name not in further_fields.FIELDS]
        if given or spec.stream:
            raise InvalidRequestError(
                f"{', '.join(given) or 'stream'} has no meaning in loglikelihood mode, where nothing is generated. "
                "Leave it out.",
                f"spec.sampling.{given[0]}" if given else "spec.stream",
            )
    if spec.suite.repeats > 1:
        field = "spec.suite.repeats"
        raise InvalidRequestError(f"{field} must be 0 or 1 in loglikelihood mode: the answers would be equal.", field)
    if spec.reading:
        raise InvalidRequestError(
            "reading has no meaning in loglikelihood mode, where no answer is read. Leave it out.", "spec.reading"
        )


def _check_provider_batch(spec: job_pb2.JobSpec) -> None:
    if spec.provider_batch and (not spec.HasField("dataset") or calls_nobody(spec)):
        raise InvalidRequestError(
            "provider_batch is for datasets whose rows are asked. Leave it out.", "spec.provider_batch"
        )


def _check_endpoint(spec: job_pb2.JobSpec, fleet: Fleet, now: float) -> None:
    try:
        endpoint = fleet.endpoint(spec.endpoint, now)
    except NotFoundError as error:
        raise InvalidRequestError(error.message, "spec.endpoint") from error
    if spec.provider_batch and endpoint.kind not in _BATCH_KINDS:
        raise InvalidRequestError(
            refusals.no_batch_api(spec.endpoint, endpoint.kind, _BATCH_KINDS), "spec.provider_batch"
        )
    _check_reachable(spec, endpoint)
    model = named(endpoint.models, spec.model) or endpoint_pb2.Model()
    own = model.capabilities.HasField("loglikelihood")
    known = model.capabilities if own else endpoint.capabilities
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD and known.HasField("loglikelihood") and not known.loglikelihood:
        it = f"{model.model} at {spec.endpoint}" if own else spec.endpoint
        raise InvalidRequestError(refusals.no_loglikelihood(it), "spec.mode")
    if spec.budget_usd and model.model:
        budget.check_prices(spec, model)
    if spec.reuse.any_job and model.model and not takes_stored(spec.reuse, model.digest):
        raise InvalidRequestError(refusals.weights_unknown(spec.endpoint, spec.model), "spec.reuse.any_job")


def _ask_in_its_form(spec: job_pb2.JobSpec, fleet: Fleet, now: float) -> None:
    """Asks for what jobs that judge, and those of experiments, need of an endpoint."""
    # An unknown endpoint is refused with all that is asked of it.
    with suppress(NotFoundError):
        kind = fleet.endpoint(spec.endpoint, now).kind
        if spec.HasField("judging"):
            judging_rules.ask_for_form(spec, kind)
        if spec.experiment_name and kind == "ollama":
            further_fields.write(spec.sampling, further_fields.fields(spec.sampling) | {"keep_alive": KEEP_ALIVE})


def check_judges(judges: Iterable[job_pb2.Judge], fleet: Fleet, now: float) -> None:
    """Refuses a judge whose job would be refused, before anything is judged. Raises InvalidRequestError."""
    for place, judge in enumerate(judges):
        _check_judge(judge, f"spec.judges[{place}]", fleet, now)


def _check_judge(judge: job_pb2.Judge, path: str, fleet: Fleet, now: float) -> None:
    asked = job_pb2.JobSpec(
        endpoint=judge.endpoint, model=judge.model, sampling=judge.sampling, budget_usd=judge.budget_usd
    )
    try:
        _check_model(asked)
        _check_declared(asked)
        _write_further_fields(asked)
        _check_endpoint(asked, fleet, now)
        budget.check_form(asked, None)
    except InvalidRequestError as error:
        raise InvalidRequestError(error.message, f"{path}.{error.field.removeprefix('spec.')}") from error


def _check_reachable(spec: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint) -> None:
    """Refuses what would fail each call of the job: no key, an unlisted model, a parameter without a field in the
    protocol. An endpoint that is down or absent may come back with other models."""
    if endpoint.state == _STATE.STATE_NOT_CONFIGURED:
        raise InvalidRequestError(no_key(spec.endpoint, endpoint.kind), "spec.endpoint")
    is_listed = endpoint.state in (_STATE.STATE_REACHABLE, _STATE.STATE_LIMITED) and endpoint.HasField("refreshed_at")
    if is_listed and named(endpoint.models, spec.model) is None:
        raise InvalidRequestError(no_model(endpoint, spec.model), "spec.model")
    if endpoint.baseline:
        # Baselines take part in comparisons of models, with the parameters of these.
        return
    for one, _ in spec.sampling.ListFields():
        if one.name in PARAMETERS and endpoint.kind not in PARAMETERS[one.name].kinds:
            field = f"spec.sampling.{one.name}"
            raise InvalidRequestError(not_taken(spec.endpoint, f"sampling.{one.name}"), field)
    # A job that takes another job's answers must have the same parameters.
    if not spec.reuse.job_id:
        values = further_fields.fields(spec.sampling)
        if problem := further_problem(endpoint.kind, spec.endpoint, values, "sampling.extra_json"):
            raise InvalidRequestError(problem, "spec.sampling.extra_json")


def _check_suite(spec: job_pb2.JobSpec, fleet: Fleet, now: float) -> None:
    work = spec.suite
    name, colon, open_task = work.suite.partition(":")
    suite = fleet.suite(name, now)
    if suite.open:
        _check_open_task(work, open_task)
        if spec.reading:
            raise InvalidRequestError(
                f"Tasks of {name} read answers by filters of their own. Leave reading out.", "spec.reading"
            )
        return
    if colon:
        raise InvalidRequestError(
            f"{suite.title} has a fixed list of tasks. Name tasks in tasks, and {name} as suite.", "spec.suite.suite"
        )
    wanted = _chosen_tasks(suite, work.tasks)
    # Tasks that cannot run in this way are left out of the plan. If none is left, the first one says why.
    misfits = [why for task in wanted if (why := _misfit(task, spec))]
    if misfits and len(misfits) == len(wanted):
        raise misfits[0]


def _chosen_tasks(suite: suite_pb2.Suite, names: Sequence[str]) -> list[suite_pb2.TaskInfo]:
    """The tasks of these names; all without any."""
    tasks = {task.task: task for task in suite.tasks}
    field = "spec.suite.tasks"
    if unknown := [name for name in names if name not in tasks]:
        raise InvalidRequestError(refusals.not_valid(unknown[0], f"task of {suite.title}", tasks), field)
    if len(set(names)) != len(names):
        raise InvalidRequestError("A task is named twice.", field)
    return [tasks[name] for name in names or tasks]


def _misfit(task: suite_pb2.TaskInfo, spec: job_pb2.JobSpec) -> InvalidRequestError | None:
    """Why a task cannot run as asked."""
    if spec.mode not in task.modes:
        return InvalidRequestError(f"{task.title} cannot run in {MODES.of(spec.mode)} mode.", "spec.mode")
    if spec.suite.shots > task.max_shots:
        field = "spec.suite.shots"
        return InvalidRequestError(refusals.between(f"{field} of {task.title}", 0, task.max_shots), field)
    return None


def _check_open_task(work: job_pb2.SuiteWork, task: str) -> None:
    """Here, a task of an open suite is checked only by its form; the planning evaluator checks the rest."""
    suite = work.suite.partition(":")[0]
    if not _OPEN_TASK.fullmatch(task):
        raise InvalidRequestError(
            f"Name a task of {suite} as {suite}:<task>, with up to 100 letters, digits, _, . and -.", "spec.suite.suite"
        )
    if work.tasks and list(work.tasks) != [task]:
        raise InvalidRequestError(f"{work.suite} is one task; leave tasks out.", "spec.suite.tasks")
