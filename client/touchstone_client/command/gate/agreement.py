"""Whether a job that is named is the run that the other arguments describe."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from google.protobuf.json_format import MessageToJson
from google.protobuf.struct_pb2 import Struct

from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.sampling import PARAMETERS, endpoint_of
from touchstone_client.command.scores import optional
from touchstone_client.errors import InvalidError
from touchstone_client.specs import mode_of, sampling_parameters, suite_of


def require_same(client: Client, options: argparse.Namespace, job: job_pb2.Job) -> None:
    """Raises InvalidError for arguments that are given and differ from the job's."""
    differing = [
        f"{name} is {asked}, the job's is {has or 'not set'}"
        for name, asked, has in _pairs(client, options, job.spec, mode_of(job))
        if asked and asked != has
    ]
    if differing:
        raise InvalidError.of(
            f"Job {job.job_id} is not what the arguments describe: {'; '.join(differing)}. Leave them out to judge "
            "this job, or name another one."
        )


def _pairs(
    client: Client, options: argparse.Namespace, spec: job_pb2.JobSpec, mode: str
) -> Iterator[tuple[str, str, str]]:
    """Each argument with what was given, empty when nothing was, and what the job has."""
    work = spec.suite
    yield "--suite", options.suite or "", suite_of(spec)
    endpoint = options.endpoint or ""
    if endpoint not in ("", spec.endpoint):
        endpoint = endpoint_of(client, endpoint)
    yield "--endpoint", endpoint, spec.endpoint
    yield "--model", options.model or "", spec.model
    yield "--mode", options.mode or "", mode
    yield "--tasks", ",".join(sorted(options.tasks)), ",".join(sorted(work.tasks))
    yield "--limit", _number(options.limit), _number(work.limit)
    yield "--shots", _number(options.shots), _number(work.shots)
    yield "--repeats", _number(options.repeats), _number(max(1, work.repeats))
    yield "--sample-seed", _number(options.sample_seed), _number(work.seed)
    for name in PARAMETERS:
        asked, has = getattr(options, name), optional(spec.sampling, name)
        yield f"--{name.replace('_', '-')}", _value(asked), _value(has)
    custom = sampling_parameters(options.custom_config).extra
    yield "--custom-config", _json(custom), _json(spec.sampling.extra)


def _value(value: object) -> str:
    return "" if value is None else str(value)


def _json(extra: Struct) -> str:
    return MessageToJson(extra, indent=None) if extra else ""


def _number(value: int) -> str:
    return str(value or "")
