"""Whether a named job is the run that the other arguments describe."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from services.words.enums import READINGS, mode_name
from services.words.jobs import suite_of
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.sampling import endpoint_of
from touchstone_client.command.reports.scores import optional
from touchstone_client.errors import InvalidError
from touchstone_client.specs import further_fields


def require_same(client: Client, options: argparse.Namespace, job: job_pb2.Job) -> None:
    """Raises InvalidError for arguments that are given and differ from the job's."""
    differing = [
        f"{name} is {asked}, the job's is {has or 'not set'}"
        for name, asked, has in _pairs(client, options, job.spec, mode_name(job.spec.mode))
        if asked and asked != has
    ]
    if differing:
        raise InvalidError.of(
            f"Job {job.job_id} does not match the arguments: {'; '.join(differing)}. Leave them out to judge this "
            "job, or name another job."
        )


def _pairs(
    client: Client, options: argparse.Namespace, spec: job_pb2.JobSpec, mode: str
) -> Iterator[tuple[str, str, str]]:
    """Each argument with the given value, empty without one, and the job's value."""
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
    yield "--reading", options.reading, READINGS.of(spec.reading)
    yield "--sample-seed", _number(options.sample_seed), _number(work.seed)
    for name, parameter in PARAMETERS.items():
        asked, has = getattr(options, name), optional(spec.sampling, name)
        yield parameter.flags[0], _value(asked), _value(has)
    asked, has = options.custom_config or {}, further_fields(spec.sampling)
    # The order is unknown for a job of an earlier version.
    same = asked == has and not spec.sampling.extra_json
    yield "--custom-config", _json(asked), _json(asked if same else has)


def _value(value: object) -> str:
    return "" if value is None else str(value)


def _json(custom: dict[str, Any]) -> str:
    return json.dumps(custom, ensure_ascii=False) if custom else ""


def _number(value: int) -> str:
    return str(value or "")
