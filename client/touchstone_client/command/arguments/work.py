"""The arguments that choose what `run` and `estimate` run: models on a suite, or on a dataset."""

from __future__ import annotations

import argparse
from collections.abc import Container
from typing import Any, cast

from services.words.job_options import ALL, DATASET, DatasetJobOptions
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import add_field
from touchstone_client.command.arguments.sampling import add_how, options_of, suite_spec_of
from touchstone_client.command.arguments.scoring import add_further, add_scoring, further_of, given, scoring_of
from touchstone_client.specs import dataset_spec

_OF_SUITES = ("tasks", "mode", "shots", "repeats")


def add_work(parser: argparse.ArgumentParser, *, models_elsewhere: bool = False, without: Container[str] = ()) -> Any:
    """`models_elsewhere`: the verb names its models otherwise, and needs their answers soon. Leaves out the options in
    `without`. Returns the group of which one argument is required."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", default="", help="a suite, e.g. glue; lm_eval:<task> where that is enabled")
    what.add_argument("--dataset", default="", metavar="DATASET", help="an uploaded dataset's id, ds_…")
    if not models_elsewhere:
        words = "a model's id, or model@endpoint; may be repeated"
        parser.add_argument("--model", dest="models", action="append", required=True, metavar="MODEL", help=words)
    words = "an endpoint's name, or its kind when only one has it; not needed where only one has the model"
    parser.add_argument("--endpoint", "--provider", default="", help=words)
    add_how(parser, without)
    add_field(parser, ALL["budget_usd"], "; needs known prices, and --max-tokens or max_tokens in every row")
    if "labels" not in without:
        add_field(parser, ALL["labels"], "; may be repeated")
    if models_elsewhere:
        # The answers of a provider's batch come all at once.
        parser.set_defaults(provider_batch=False)
    else:
        add_field(parser, ALL["provider_batch"], "; of datasets")
    add_scoring(parser, "of a dataset, its own")
    add_further(parser)
    return what


def check(options: argparse.Namespace) -> None:
    """Ends the command for arguments that do not go together."""
    if options.dataset and (wrong := [name for name in _OF_SUITES if getattr(options, name, None)]):
        options.parser.error(f"{', '.join(f'--{name}' for name in wrong)}: for suites only")
    if options.suite and (given(options) or options.further or options.provider_batch):
        options.parser.error("--provider-batch and the scoring options are for datasets only")


def specs_of(client: Client, options: argparse.Namespace) -> list[job_pb2.JobSpec]:
    """A spec for each model. Raises what `Client.targets` raises."""
    targets = client.targets(options.models, options.endpoint)
    if options.suite:
        return [suite_spec_of(options, target) for target in targets]
    asked = cast(DatasetJobOptions, options_of(options, DATASET))
    asked["scoring"], asked["further"] = None, further_of(options) or []
    if given(options):
        asked["scoring"] = scoring_of(options, client.dataset(options.dataset).dataset.scoring)
    return [
        dataset_spec(
            options.dataset,
            endpoint=target.endpoint,
            model=target.model,
            **asked,
        )
        for target in targets
    ]
