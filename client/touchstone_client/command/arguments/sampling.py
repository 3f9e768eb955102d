"""What runs: suite, model, parameters. `run`, `estimate`, `gate` and `schedules create` share these arguments."""

from __future__ import annotations

import argparse
from collections.abc import Container, Mapping
from typing import Any, cast

from services.words.fields import Field
from services.words.job_options import ALL, SUITE, SuiteJobOptions
from services.words.sampling import PARAMETERS, SamplingParameters
from touchstone.v1 import job_pb2
from touchstone_client import targets
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field, dest, json_object
from touchstone_client.specs import sampling_parameters, suite_spec
from touchstone_client.targets import Target

_OF_EVERY_JOB = (
    *("tasks", "limit", "mode", "shots", "repeats", "reading", "seed"),
    *("stream", "any_job", "without_digest", "priority", "project_id", "time_limit_s"),
)
"""The arguments of every verb that creates jobs."""


def add_what(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Suite, endpoint, model: one model on one suite."""
    parser.add_argument("--suite", required=required, help="a suite, e.g. glue; lm_eval:<task> where that is enabled")
    parser.add_argument(
        "--endpoint", "--provider", required=required, help="an endpoint's name, or its kind when only one has it"
    )
    parser.add_argument("--model", required=required, help="a model id at that endpoint")


def add_how(parser: argparse.ArgumentParser, without: Container[str] = ()) -> None:
    """Tasks, mode, sampling, priority, except for options in `without`. Names that begin with --ollama come from the
    product's first document."""
    for name in _OF_EVERY_JOB:
        if name not in without:
            add_field(parser, ALL[name])
    add_sampling(parser)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """The sampling parameters, as `parameters_of` reads them."""
    for parameter in PARAMETERS.values():
        add_field(parser, parameter)
    parser.add_argument(
        "--custom-config", type=json_object, metavar="JSON", help="merged into the provider's request as it is"
    )


def spec_of(client: Client, options: argparse.Namespace) -> job_pb2.JobSpec:
    """What the arguments ask for. Raises InvalidError for an endpoint kind that several endpoints have."""
    return suite_spec_of(options, Target(options.model, endpoint_of(client, options.endpoint)))


def suite_spec_of(options: argparse.Namespace, target: Target) -> job_pb2.JobSpec:
    asked = cast(SuiteJobOptions, options_of(options, SUITE))
    return suite_spec(options.suite, endpoint=target.endpoint, model=target.model, **asked)


def options_of(options: argparse.Namespace, fields: Mapping[str, Field]) -> dict[str, Any]:
    """The options of a job that the verb takes, by their names."""
    found = {name: getattr(options, dest(field), None) for name, field in fields.items()}
    return found | {"labels": dict(found["labels"] or ()), "sampling": parameters_of(options)}


def parameters_of(options: argparse.Namespace) -> job_pb2.Sampling:
    asked = cast(SamplingParameters, {name: getattr(options, name) for name in PARAMETERS})
    return sampling_parameters(options.custom_config, **asked)


def endpoint_of(client: Client, word: str) -> str:
    """As `targets.endpoint_of`, for the installation's endpoints."""
    return targets.endpoint_of(word, list(client.endpoints()))
