"""The arguments that say what `run` and `estimate` run: models on a suite, or on a dataset."""

from __future__ import annotations

import argparse

from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments import money, pair
from touchstone_client.command.sampling import add_how, parameters_of, suite_spec_of
from touchstone_client.command.scoring import add_scoring, given, scoring_of
from touchstone_client.specs import dataset_spec
from touchstone_client.targets import Target

_OF_SUITES = ("tasks", "mode", "shots", "repeats")


def add_work(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", default="", help="a suite, e.g. glue; lm_eval:<task> where that is enabled")
    what.add_argument("--dataset", default="", metavar="DATASET", help="an uploaded dataset's id, ds_…")
    words = "a model's id, or model@endpoint; may be repeated"
    parser.add_argument("--model", dest="models", action="append", required=True, metavar="MODEL", help=words)
    words = "an endpoint's name, or its kind when only one has it; not needed where only one has the model"
    parser.add_argument("--endpoint", "--provider", default="", help=words)
    add_how(parser)
    words = "most that the job may cost in US dollars; needs known prices, and --max-tokens or max_tokens in every row"
    parser.add_argument("--budget-usd", type=money, default=0.0, metavar="USD", help=words)
    words = "a note shown with the job; may be repeated"
    parser.add_argument(
        "--label", dest="labels", type=pair, action="append", default=[], metavar="KEY=VALUE", help=words
    )
    words = "of datasets: send the rows through the provider's own batch API, at its lower price and within its day"
    parser.add_argument("--provider-batch", action="store_true", help=words)
    add_scoring(parser, "of a dataset, its own")


def check(options: argparse.Namespace) -> None:
    """Ends the command for arguments that do not go together."""
    if options.dataset and (wrong := [name for name in _OF_SUITES if getattr(options, name)]):
        options.parser.error(f"{', '.join(f'--{name}' for name in wrong)}: for suites only")
    if options.suite and (given(options) or options.provider_batch):
        options.parser.error("--provider-batch and what says how answers are scored are for datasets only")


def specs_of(client: Client, options: argparse.Namespace) -> list[job_pb2.JobSpec]:
    """A spec for each model. Raises what `Client.targets` raises."""
    targets = client.targets(options.models, options.endpoint)
    if options.suite:
        return [_suite(options, target) for target in targets]
    scoring = None
    if given(options):
        scoring = scoring_of(options, client.dataset(options.dataset).dataset.scoring)
    return [
        dataset_spec(
            options.dataset,
            endpoint=target.endpoint,
            model=target.model,
            limit=options.limit,
            seed=options.sample_seed,
            scoring=scoring,
            reading=options.reading,
            stream=options.stream,
            sampling=parameters_of(options),
            priority=options.priority,
            project_id=options.project_id,
            time_limit_s=options.time_limit,
            any_job=options.reuse,
            labels=dict(options.labels),
            budget_usd=options.budget_usd,
            provider_batch=options.provider_batch,
        )
        for target in targets
    ]


def _suite(options: argparse.Namespace, target: Target) -> job_pb2.JobSpec:
    spec = suite_spec_of(options, target)
    spec.budget_usd = options.budget_usd
    spec.labels.update(dict(options.labels))
    return spec
