"""What runs: suite, model, parameters. `run`, `estimate`, `gate` and `schedules create` share these arguments."""

from __future__ import annotations

import argparse

from touchstone.v1 import job_pb2
from touchstone_client import targets
from touchstone_client.client import Client
from touchstone_client.command.arguments import count, finite, json_object, names, project, seed, whole
from touchstone_client.specs import MODES, PRIORITIES, READINGS, sampling_parameters, suite_spec
from touchstone_client.targets import Target

PARAMETERS = ("temperature", "top_p", "top_k", "max_tokens", "context_length", "seed", "repeat_penalty")
"""Names of sampling parameters, in arguments and in protos."""


def add_what(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Suite, endpoint, model: one model on one suite."""
    parser.add_argument("--suite", required=required, help="a suite, e.g. glue; lm_eval:<task> where that is enabled")
    parser.add_argument(
        "--endpoint", "--provider", required=required, help="an endpoint's name, or its kind when only one has it"
    )
    parser.add_argument("--model", required=required, help="a model id at that endpoint")


def add_how(parser: argparse.ArgumentParser) -> None:
    """Tasks, mode, sampling, priority. Names that begin with --ollama are those of the product's first document."""
    add = parser.add_argument
    add("--tasks", type=names, default=[], metavar="A,B", help="only these tasks, separated by commas")
    add("--limit", type=count, default=0, metavar="N", help="most items a task; without it, all")
    add("--mode", choices=[*MODES], default="", help="how answers are obtained (default: generate)")
    add("--shots", type=whole, default=0, metavar="K", help="few-shot examples in a prompt")
    add("--repeats", type=whole, default=0, metavar="K", help="answers per item")
    words = "layers by which answers are read (default: each task's own)"
    add("--reading", choices=[*READINGS], default="", help=words)
    add("--sample-seed", type=seed, default=0, metavar="N", help="of the sample that --limit takes")
    add("--temperature", "--ollama-temperature", type=finite, metavar="T", help="0–2")
    add("--top-p", "--ollama-top-p", type=finite, metavar="P", help="0–1")
    add("--top-k", "--ollama-top-k", type=whole, metavar="K", help="0–100")
    add(
        "--max-tokens",
        "--num-predict",
        "--ollama-num-predict",
        type=count,
        metavar="N",
        help="most tokens of an answer",
    )
    add("--context-length", "--num-ctx", "--ollama-num-ctx", type=count, metavar="N", help="context window in tokens")
    add("--seed", "--ollama-seed", type=seed, metavar="N", help="the model's seed")
    add("--repeat-penalty", "--ollama-repeat-penalty", type=finite, metavar="R", help="0–2")
    add("--custom-config", type=json_object, metavar="JSON", help="merged into the provider's request as it is")
    add("--stream", action="store_true", help="measure the time to the first token")
    add("--reuse", action="store_true", help="take the answers that any job has had to the very same requests")
    add("--priority", choices=[*PRIORITIES], default="", help="place in the queue")
    add("--project-id", type=project, default=0, metavar="N", help="a number to group jobs by")
    add("--time-limit", type=count, default=0, metavar="SECONDS", help="most seconds that the job may run")


def spec_of(client: Client, options: argparse.Namespace) -> job_pb2.JobSpec:
    """What the arguments ask for. Raises InvalidError for an endpoint kind that several endpoints have."""
    return suite_spec_of(options, Target(options.model, endpoint_of(client, options.endpoint)))


def suite_spec_of(options: argparse.Namespace, target: Target) -> job_pb2.JobSpec:
    return suite_spec(
        options.suite,
        endpoint=target.endpoint,
        model=target.model,
        mode=options.mode or "generate",
        tasks=options.tasks,
        limit=options.limit,
        shots=options.shots,
        repeats=options.repeats,
        seed=options.sample_seed,
        reading=options.reading,
        stream=options.stream,
        sampling=parameters_of(options),
        priority=options.priority,
        project_id=options.project_id,
        time_limit_s=options.time_limit,
        any_job=options.reuse,
    )


def parameters_of(options: argparse.Namespace) -> job_pb2.Sampling:
    return sampling_parameters(options.custom_config, **{name: getattr(options, name) for name in PARAMETERS})


def endpoint_of(client: Client, word: str) -> str:
    """As `targets.endpoint_of`, of what the installation has."""
    return targets.endpoint_of(word, list(client.endpoints()))
