"""`touchstone receipt`: what a score rests on, and where two receipts differ."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from services.words import phrases
from services.words.enums import READINGS, mode_name
from services.words.jobs import suite_of
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import JOB, add_format, leaf
from touchstone_client.command.arguments.job_ids import job_of
from touchstone_client.command.arguments.scoring import last_messages, words
from touchstone_client.command.exits import DONE
from touchstone_client.command.printing.documents import document
from touchstone_client.command.printing.figures import cost, dollars, listed_on, text
from touchstone_client.command.printing.labels import labels
from touchstone_client.command.printing.output import Column, Report, Table, show
from touchstone_client.command.reports.scores import optional


def add(commands: Any) -> None:
    sentence = "show what a job's scores rest on, or what differs between two jobs"
    parser = leaf(commands, "receipt", sentence, _receipt)
    parser.add_argument("job", metavar="JOB", help=JOB)
    parser.add_argument("other", metavar="JOB", nargs="?", default="", help="a second job, to compare with")
    parser.add_argument("--all", action="store_true", help="of two jobs: also show what is the same")
    add_format(parser)


def _receipt(options: argparse.Namespace) -> int:
    with Client() as client:
        first = client.job(job_of(client, options.job))
        if not options.other:
            show(_one(first), options.format)
            return DONE
        second = client.job(job_of(client, options.other))
    show(_two(first, second, options.all), options.format)
    return DONE


def _one(job: job_pb2.Job) -> Report:
    """With its prices and its cost, in which two jobs may differ."""
    known = {name: value for name, value in facts(job).items() if value not in ("", None)}
    paid = {"prices": _prices(job), "cost": cost(job)}
    rows = [*known.items(), *((name, value) for name, value in paid.items() if value)]
    columns = (Column("fact", "fact"), Column("value", "value", fold=True))
    return Report([Table(columns, rows)], document=known | _money(job))


def _money(job: job_pb2.Job) -> dict[str, Any]:
    """Members as in REST; empty if calls have no price."""
    progress, budget = job.progress, job.spec.budget_usd
    prices = {"prices": document(job.receipt.prices)} if job.receipt.HasField("prices") else {}
    if not (budget or progress.HasField("cost_usd")):
        return prices
    return prices | {
        "budget_usd": budget or None,
        "cost_usd": optional(progress, "cost_usd"),
        "lost_calls": progress.lost_calls,
        "lost_usd": progress.lost_usd if budget else None,
    }


def _prices(job: job_pb2.Job) -> str:
    """$2.50 in and $15.00 out per million tokens, and the source."""
    prices, longer = job.receipt.prices, job.receipt.prices.long_prompts
    if not job.receipt.HasField("prices"):
        return ""
    words = [f"{dollars(prices.input)} in, {dollars(prices.output)} out per million tokens"]
    if prices.HasField("long_prompts"):
        above = f"of prompts above {longer.above_tokens:,} tokens"
        words.append(f"{above} {dollars(longer.input)} in, {dollars(longer.output)} out")
    if job.spec.provider_batch:
        words.append(f"{prices.batch_share:g} of it through the batch API")
    listed = listed_on(prices)
    words.append(f"{listed} (table {prices.table_digest})" if listed else phrases.PRICE_SOURCES.get(prices.source, ""))
    return "; ".join(filter(None, words))


def _two(first: job_pb2.Job, second: job_pb2.Job, everything: bool) -> Report:
    one, two = facts(first), facts(second)
    names = [*one, *(name for name in two if name not in one)]
    rows = [(name, one.get(name, ""), two.get(name, "")) for name in names]
    shown = [row for row in rows if everything or row[1] != row[2]]
    called = labels([first, second]) if first.job_id != second.job_id else {first.job_id: first.spec.model}
    titles = [called[job.job_id] for job in (first, second)]
    columns = (
        Column("fact", "fact"),
        Column("first", titles[0], fold=True),
        Column("second", titles[1], fold=True),
        *([Column("same", "same", text)] if everything else []),
    )
    table = Table(columns, [(*row, row[1] == row[2]) if everything else row for row in shown])
    return Report([table], notes=_notes(one, two))


def _notes(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """What the difference means for rankings and comparisons."""
    same = {name: one.get(name, "") == two.get(name, "") for name in (*one, *two)}
    if all(same.values()):
        return ["Nothing differs."]
    return [
        "The configuration is the same: both runs belong to one row of a leaderboard."
        if same["configuration"]
        else "The configurations differ: a leaderboard ranks them separately.",
        "The items are the same, so the runs can be compared item by item."
        if same["item set"]
        else "The items or their scoring differ, so the runs do not rank together.",
    ]


def facts(job: job_pb2.Job) -> dict[str, Any]:
    """What the scores rest on, by name, the most important first."""
    spec, receipt = job.spec, job.receipt
    work = spec.dataset if spec.WhichOneof("work") == "dataset" else spec.suite
    return {
        "configuration": receipt.configuration,
        "model": spec.model,
        "digest": receipt.model_digest,
        "endpoint": spec.endpoint,
        "kind": receipt.endpoint_kind,
        "server": receipt.server,
        "setup": receipt.setup,
        "software": receipt.software,
        "concurrency": receipt.concurrency or "",
        "template": receipt.template,
        "mode": mode_name(job.spec.mode),
        **dict(_flat("parameters", _parameters(receipt.parameters))),
        **dict(_flat("capabilities", document(receipt.capabilities))),
        "suite": suite_of(spec),
        "dataset digest": spec.dataset.digest,
        "last message": last_messages(spec.dataset.last_assistant),
        "scoring": words(spec.dataset.scoring) if spec.HasField("dataset") else "",
        "further scorers": "; ".join(map(words, spec.dataset.further)),
        "limit": work.limit or "",
        "sample seed": work.seed or "",
        "shots": spec.suite.shots or "",
        "repeats": spec.suite.repeats or "",
        "item set": job.item_set,
        "answers from": receipt.source_job,
        **dict(_flat("imported", document(receipt.import_counts))),
        **{f"{plan.task}: {name}": value for plan in job.plan for name, value in _task(plan)},
    }


def _task(plan: job_pb2.TaskPlan) -> Iterator[tuple[str, Any]]:
    yield "items", plan.items
    yield "rows ask for", ", ".join(plan.row_parameters)
    yield "prompt", plan.prompt_hash
    yield "version", plan.version
    yield "scorer", plan.scorer_version
    yield "plug-in", plan.plugin
    yield "reading", READINGS.of(plan.reading)
    yield "data", " ".join(filter(None, (plan.data.dataset, plan.data.config, plan.data.split, plan.data.revision)))


def _parameters(sent: str) -> Any:
    """The parameters of requests, which are kept as JSON."""
    try:
        return json.loads(sent) if sent else {}
    except ValueError:
        return sent


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in sorted(value.items()):
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, value
