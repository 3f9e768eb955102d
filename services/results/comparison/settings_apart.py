"""What tells configurations apart, from one run of each. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from services.results.comparison.wording import listed
from services.results.configurations import SHORT
from touchstone.v1 import job_pb2

_CHARACTERS = 60
"""Of one setting."""


def apart(jobs: Sequence[job_pb2.Job]) -> list[list[str]]:
    """Of each job the settings in which not all agree, as "temperature 0.7"."""
    settings = [dict(_settings(job)) for job in jobs]
    names = dict.fromkeys(name for one in sorted(settings, key=len, reverse=True) for name in one)
    differ = [name for name in names if len({one.get(name) for one in settings}) > 1]
    if "tasks" in differ:
        # Other tasks have other prompts.
        differ.remove("prompts")
    return [[f"{name} {one.get(name, 'not set')[:_CHARACTERS]}" for name in differ] for one in settings]


def _settings(job: job_pb2.Job) -> Iterator[tuple[str, str]]:
    """What a configuration's hash is made of, and what runs of one configuration share."""
    spec, receipt = job.spec, job.receipt
    yield "model", spec.model
    yield "endpoint", spec.endpoint
    yield "digest", receipt.model_digest[:SHORT] or "unknown"
    yield from _parameters("", _parsed(receipt.parameters))
    yield "shots", str(spec.suite.shots)
    yield "repeats", str(max(1, spec.suite.repeats))
    yield "tasks", listed([plan.task for plan in job.plan], 3)
    yield "template", receipt.template or "unknown"
    yield "setup", receipt.setup or "unknown"
    prompts = repr(sorted((plan.task, plan.version, plan.prompt_hash) for plan in job.plan))
    yield "prompts", hashlib.sha256(prompts.encode()).hexdigest()[:SHORT]


def _parsed(parameters: str) -> Any:
    try:
        return json.loads(parameters) if parameters else {}
    except ValueError:
        return parameters


def _parameters(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _parameters(f"{path}.{name}" if path else str(name), inner)
    else:
        yield path or "parameters", value if isinstance(value, str) else json.dumps(value)
