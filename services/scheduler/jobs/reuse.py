"""Jobs that take another job's answers: which sources are allowed, and what must be the same in both. Pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable

from services import further_fields
from services.errors import ConflictError, InvalidRequestError
from services.words.enums import MODES, RERUN
from services.words.jobs import FINISHED, is_import, mode_of
from services.words.sampling import RAISED
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2


def check_form(reuse: job_pb2.Reuse) -> None:
    """Checks what does not need the other job. Raises InvalidRequestError."""
    if reuse.import_id and (reuse.job_id or reuse.rerun or reuse.any_job):
        raise InvalidRequestError("Use imported answers or answers of jobs, not both.", "spec.reuse.import_id")
    if reuse.import_id and not _is_uuid(reuse.import_id):
        raise InvalidRequestError("import_id must be an id that ImportAnswers returned.", "spec.reuse.import_id")
    if reuse.any_job and reuse.job_id:
        raise InvalidRequestError("Use answers of one job or of any job, not both.", "spec.reuse.any_job")
    if reuse.without_digest and not reuse.any_job:
        raise InvalidRequestError("reuse.without_digest needs reuse.any_job. Set both.", "spec.reuse.without_digest")
    if reuse.rerun and not reuse.job_id:
        raise InvalidRequestError("Name the job whose items to run again.", "spec.reuse.job_id")
    if not set(reuse.rerun) <= set(RERUN.values()):
        names = ", ".join(RERUN)
        raise InvalidRequestError(
            f"Outcomes that can run again: {names}. To run every item again, start a new job.", "spec.reuse.rerun"
        )


def check_import(spec: job_pb2.JobSpec, found: results_service_pb2.GetImportResponse) -> None:
    """Checks that the job matches the import. Raises InvalidRequestError."""
    run, work = found.run, spec.suite
    repeats = max((task.repeats for task in found.tasks), default=1)
    for field, asked, holds in (
        ("endpoint", spec.endpoint, run.tool),
        ("model", spec.model, run.model),
        ("mode", MODES.of(mode_of(spec)), MODES.of(run.mode)),
        ("suite.suite", work.suite, run.suite),
        ("dataset.dataset_id", spec.dataset.dataset_id, run.dataset_id),
        ("dataset.limit", str(spec.dataset.limit), "0"),
        ("suite.repeats", str(max(1, work.repeats)), str(repeats)),
        ("suite.limit", str(work.limit), "0"),
    ):
        if asked != holds:
            raise InvalidRequestError(f"{field} must be {holds!r} for this import; it is {asked!r}.", f"spec.{field}")
    if absent := sorted(set(work.tasks) - {task.task for task in found.tasks}):
        raise InvalidRequestError(f"The import has no answers for {', '.join(absent)}.", "spec.suite.tasks")


def check_mark(job_id: str, result: metric_pb2.JobResult) -> None:
    """Raises ConflictError for an invalidated source: a job from its answers would be invalid, too."""
    if result.mark == "invalidated":
        why = f": {result.mark_reason}" if result.mark_reason else ""
        raise ConflictError(
            f"Job {job_id} was marked as invalid{why}. Its answers cannot be reused while the mark stands. Start a "
            "new job, or remove the mark."
        )


def check_kept(job_id: str, texts_dropped: str) -> None:
    """Raises ConflictError when the texts of a source's answers were dropped, at an ISO 8601 time."""
    if texts_dropped:
        raise ConflictError(
            f"The answer texts of job {job_id} were dropped on {texts_dropped[:10]} because the store was full, so "
            "they cannot be scored again or completed. Its scores are kept. Start a new job."
        )


def check_rerun(reuse: job_pb2.Reuse, source: job_pb2.Job, result: metric_pb2.JobResult) -> None:
    """Checks that some item of a finished source would be asked again: one with these outcomes, or one without a final
    answer.

    Raises InvalidRequestError.
    """
    asked = [word for outcome in dict.fromkeys(reuse.rerun) if (word := RERUN.of(outcome))]
    if not asked or source.state not in FINISHED:
        return
    ended = {word: getattr(result.outcomes, word) for word in RERUN}
    missing = sum(plan.items * max(1, plan.repeats) for plan in source.plan) - sum(t.items for t in result.tasks)
    if missing > 0 or ended["infrastructure_error"] or any(ended[name] for name in asked):
        return
    others = ", ".join(f"{name} ({count:,})" for name, count in ended.items() if count)
    raise InvalidRequestError(
        f"No item of job {source.job_id} ended as {' or '.join(asked)}, so there is nothing to run again. "
        + (f"Its other outcomes: {others}." if others else "All its items were answered."),
        "spec.reuse.rerun",
    )


def check_source(spec: job_pb2.JobSpec, source: job_pb2.Job) -> None:
    """Checks that Checks that `spec`, with its defaults filled in, may take the answers of `source`.

    Raises ConflictError for a source without a final set of answers, InvalidRequestError for what differs.
    """
    if is_import(source.spec):
        raise ConflictError(
            f"Job {source.job_id} was imported, so another job cannot reuse its answers. To score them with the "
            "current scorer, import the log again: touchstone import --again."
        )
    if source.state not in FINISHED:
        raise ConflictError(f"Job {source.job_id} is not finished. Wait for it, or cancel it first.")
    if not source.plan:
        raise ConflictError(f"Job {source.job_id} ended before its first item, so it has no answers to reuse.")
    for field, differs in _differences(spec, source.spec):
        if differs:
            raise InvalidRequestError(
                f"{field} differs from that of job {source.job_id}, so its answers cannot be reused. Use the same "
                "value, or start a job without reuse.",
                f"spec.{field}",
            )
    for limit in RAISED if spec.reuse.rerun else ():
        new, old = getattr(spec.sampling, limit), getattr(source.spec.sampling, limit)
        if spec.sampling.HasField(limit) and new < old:
            raise InvalidRequestError(
                f"{limit} must be {old:,} or more, as in job {source.job_id}: the answers to reuse may be that "
                f"long. It is {new:,}.",
                f"spec.sampling.{limit}",
            )


def _differences(spec: job_pb2.JobSpec, other: job_pb2.JobSpec) -> Iterable[tuple[str, bool]]:
    yield "endpoint", spec.endpoint != other.endpoint
    yield "model", spec.model != other.model
    yield "mode", mode_of(spec) != mode_of(other)
    work = spec.WhichOneof("work")
    assert work is not None
    yield work, work != other.WhichOneof("work") or _work(spec) != _work(other)
    yield "sampling", _sampling(spec, spec.reuse) != _sampling(other, spec.reuse)


def _work(spec: job_pb2.JobSpec) -> bytes:
    copy = job_pb2.JobSpec()
    copy.CopyFrom(spec)
    if copy.HasField("suite"):
        copy.suite.repeats = max(1, copy.suite.repeats)
        tasks = sorted(copy.suite.tasks)
        del copy.suite.tasks[:]
        copy.suite.tasks.extend(tasks)
    if copy.HasField("dataset"):
        # Only the rows must be the same, whatever the dataset's id and name; they are scored again in any case.
        rows = job_pb2.DatasetWork(digest=copy.dataset.digest, limit=copy.dataset.limit)
        rows.seed = copy.dataset.seed if rows.limit else 0
        copy.dataset.CopyFrom(rows)
    work: bytes = getattr(copy, copy.WhichOneof("work") or "suite").SerializeToString(deterministic=True)
    return work


def _sampling(spec: job_pb2.JobSpec, reuse: job_pb2.Reuse) -> bytes:
    copy = job_pb2.Sampling()
    copy.CopyFrom(spec.sampling)
    # A source of an earlier version has them in another field.
    further_fields.write(copy, further_fields.fields(spec.sampling))
    if reuse.rerun:
        for limit in RAISED:
            copy.ClearField(limit)
    data: bytes = copy.SerializeToString(deterministic=True)
    return data


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def begin(job: job_pb2.Job, source: job_pb2.Job) -> None:
    """Writes what the new job's plan must match: the exact items and prompts of its source.

    A re-score also keeps the source's receipt, as the endpoint is not asked.
    """
    job.plan.extend(source.plan)
    job.item_set = source.item_set
    job.receipt.CopyFrom(source.receipt)
    job.receipt.source_job = source.job_id


def too_few_stored(spec: job_pb2.JobSpec, unanswered: int, planned: int, share: float) -> str:
    """Why a job without calls fails when more than `share` of its items have no answer to score."""
    remedy = f"Retry job {spec.reuse.job_id} or re-run its failed items, then score the result."
    if is_import(spec):
        remedy = "Import the missing answers too, or import fewer tasks."
    return f"{unanswered:,} of {planned:,} items have no stored answer, which is more than {share:.0%}. {remedy}"


def check_plan(job: job_pb2.Job, plan: Iterable[job_pb2.TaskPlan], asked: job_pb2.Receipt) -> None:
    """Checks that the stored answers, of an earlier attempt or of another job, belong to the present plan. `asked` is
    the plan's receipt; what it does not contain is not compared.

    Raises ConflictError.
    """
    source = job.spec.reuse.job_id
    since = (
        f"job {source} ran, so its answers cannot be reused"
        if source
        else "the first attempt, so its answers cannot be completed"
    )
    dataset = job.spec.HasField("dataset")
    if job.plan and [_key(task, dataset) for task in job.plan] != [_key(task, dataset) for task in plan]:
        raise ConflictError(f"The data or the prompts have changed since {since}. Start a new job.")
    if asked.model_digest and job.receipt.model_digest not in ("", asked.model_digest):
        raise ConflictError(f"The weights of {job.spec.model} have changed since {since}. Start a new job.")
    before, now = job.receipt.parameters, asked.parameters
    if before and now and _but_limits(before) != _but_limits(now):
        # For instance because the endpoints file now says something else about the model.
        raise ConflictError(f"The parameters for {job.spec.model} have changed since {since}. Start a new job.")


def _but_limits(parameters: str) -> dict[str, object]:
    return {name: value for name, value in json.loads(parameters).items() if name not in RAISED}


def _key(task: job_pb2.TaskPlan, dataset: bool) -> tuple[str | int, ...]:
    # A dataset's item set includes its scoring, which may differ; the specs say which rows are taken.
    rows = (task.data.revision, task.items) if dataset else (task.item_set,)
    return task.task, task.version, task.prompt_hash, max(1, task.repeats), *rows
