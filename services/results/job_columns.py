"""What a job is filed under, and asked for by. Pure."""

from __future__ import annotations

from services.errors import InvalidRequestError
from touchstone.v1 import job_pb2, suite_pb2


def suite_of(spec: job_pb2.JobSpec) -> str:
    """The suite's name, or what stands for one: a dataset's id, an experiment's name."""
    match spec.WhichOneof("work"):
        case "suite":
            return spec.suite.suite
        case "dataset":
            return spec.dataset.dataset_id
        case "experiment":
            return spec.experiment.experiment
    return ""


def mode_of(spec: job_pb2.JobSpec) -> int:
    return int(spec.mode) or int(suite_pb2.MODE_GENERATE)


def asked_mode(mode: int) -> int:
    """The mode that a request names, GENERATE without one. Raises InvalidRequestError for a number that is none."""
    if mode not in suite_pb2.Mode.values():
        raise InvalidRequestError("mode may be generate or loglikelihood.", "mode")
    return mode or int(suite_pb2.MODE_GENERATE)
