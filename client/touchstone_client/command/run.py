"""`touchstone run`: one model on one suite."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.watching import add_watch, follow
from touchstone_client.specs import MODES, suite_spec


def add(commands: Any) -> None:
    parser = commands.add_parser("run", help="evaluate a model on a suite", description="Evaluates a model on a suite.")
    parser.add_argument("--suite", required=True, help="a suite, e.g. glue; lm_eval:<task> where that is enabled")
    parser.add_argument("--endpoint", required=True, help="an endpoint's name, e.g. ollama")
    parser.add_argument("--model", required=True, help="a model id at that endpoint")
    parser.add_argument("--tasks", type=_names, default=[], help="only these tasks, separated by commas")
    parser.add_argument("--limit", type=_count, default=0, metavar="N", help="most items a task; without it, all")
    parser.add_argument("--mode", choices=MODES, default="generate")
    parser.add_argument("--shots", type=int, default=0, metavar="K", help="few-shot examples in a prompt")
    parser.add_argument("--repeats", type=int, default=0, metavar="K", help="answers per item")
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--max-tokens", type=int, metavar="N", help="most tokens of an answer")
    parser.add_argument("--seed", type=int, help="the model's seed")
    parser.add_argument("--stream", action="store_true", help="measure the time to the first token")
    add_watch(parser)
    parser.set_defaults(do=_run)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _run(options: argparse.Namespace) -> int:
    given = {name: getattr(options, name) for name in ("temperature", "max_tokens", "seed")}
    sampling = job_pb2.Sampling(**{name: value for name, value in given.items() if value is not None})
    spec = suite_spec(
        options.suite,
        endpoint=options.endpoint,
        model=options.model,
        mode=options.mode,
        tasks=options.tasks,
        limit=options.limit,
        shots=options.shots,
        repeats=options.repeats,
        stream=options.stream,
        sampling=sampling,
    )
    with Client() as client:
        return follow(client, client.run(spec), options)


def _count(text: str) -> int:
    """1 or more: a limit of 0 would mean every item, which nobody asks for by writing a 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("it must be 1 or more; leave it out for all items")
    return int(text)
