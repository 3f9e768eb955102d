"""Job specs: made new, or copied from a job whose answers are taken."""

from __future__ import annotations

from collections.abc import Iterable

from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2

MODES = {"generate": suite_pb2.MODE_GENERATE, "loglikelihood": suite_pb2.MODE_LOGLIKELIHOOD}
RERUN = {
    "truncated": item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
    "unparsed": item_result_pb2.OUTCOME_UNPARSED,
    "refused": item_result_pb2.OUTCOME_REFUSED,
    "input_truncated": item_result_pb2.OUTCOME_INPUT_TRUNCATED,
    "error": item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
}
"""Words for the outcomes whose items can run again."""


def suite_spec(
    suite: str,
    *,
    endpoint: str,
    model: str,
    mode: str = "generate",
    tasks: Iterable[str] = (),
    limit: int = 0,
    shots: int = 0,
    repeats: int = 0,
    seed: int = 0,
    stream: bool = False,
    sampling: job_pb2.Sampling | None = None,
) -> job_pb2.JobSpec:
    """A run of one model on one suite. Numbers as in SuiteWork: 0 means all items, no examples, one answer."""
    return job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        mode=MODES[mode],
        sampling=sampling,
        stream=stream,
        suite=job_pb2.SuiteWork(suite=suite, tasks=tasks, limit=limit, shots=shots, repeats=repeats, seed=seed),
    )


def rescore_spec(source: job_pb2.Job) -> job_pb2.JobSpec:
    """Scores the stored answers of a finished job with the present scorer."""
    return _taking(source, ())


def rerun_spec(
    source: job_pb2.Job,
    outcomes: Iterable[item_result_pb2.Outcome],
    max_tokens: int | None = None,
    context_length: int | None = None,
) -> job_pb2.JobSpec:
    """Asks again for the items of a finished job that ended so, perhaps with other limits; takes its other answers."""
    spec = _taking(source, outcomes)
    if max_tokens is not None:
        spec.sampling.max_tokens = max_tokens
    if context_length is not None:
        spec.sampling.context_length = context_length
    return spec


def _taking(source: job_pb2.Job, outcomes: Iterable[item_result_pb2.Outcome]) -> job_pb2.JobSpec:
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.reuse.CopyFrom(job_pb2.Reuse(job_id=source.job_id, rerun=outcomes))
    return spec
