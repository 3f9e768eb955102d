"""A job's receipt in words: all that its score rests on."""

from __future__ import annotations

from services import further_fields
from services.gateway.pages.display import formatting
from services.gateway.pages.display.work_words import last_assistant_words, scoring_words
from services.gateway.reads import jobs
from services.words import phrases, refusals
from services.words.enums import reading_name
from services.words.jobs import reused_without_digest
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2, metric_pb2

MOST_SOURCES = 4
"""Data sets named one by one; more are counted."""


def rows(job: job_pb2.Job, result: metric_pb2.JobResult) -> list[tuple[str, str, str]]:
    """(name, what, its hash or version), without unknown ones."""
    spec, receipt = job.spec, job.receipt
    answers = f", {max(1, spec.suite.repeats)} answers per item" if spec.suite.repeats > 1 else ""
    digest = receipt.model_digest.removeprefix("sha256:")[:12]
    served = [name for name in result.served_models if name != spec.model]
    found = [
        ("Model", formatting.shown(spec.model), ""),
        ("Digest", "" if digest or not job.plan else "not reported by the provider", digest),
        ("Served", _served(served), ""),
        ("Set-up", "as configured" if receipt.setup else "", receipt.setup),
        ("Endpoint", ", ".join(filter(None, (spec.endpoint, receipt.endpoint_kind, receipt.server))), ""),
        *_data(job),
        ("Item set", formatting.plural(sum(p.items for p in job.plan), "item") if job.plan else "", job.item_set[:6]),
        ("Prompt", *_prompt(job)),
        ("Reading", _layers(job), ""),
        ("Template", {"endpoint": "the endpoint's own", "none": "none"}.get(receipt.template, ""), ""),
        ("Mode", formatting.mode(spec.mode) + _asked(spec, answers), ""),
        ("Asked with", "" if spec.reuse.import_id else sampling_words(spec.sampling), ""),
        ("Sent", _sent(job), ""),
        ("Seed", str(spec.suite.seed) if spec.suite.limit or spec.suite.shots else "", ""),
        ("Sample seed", str(spec.dataset.seed) if spec.dataset.limit else "", ""),
        ("Budget", f"${formatting.dollars(spec.budget_usd)}" if spec.budget_usd else "", ""),
        ("Largest model", f"{spec.max_model_b:g} billion parameters" if spec.max_model_b else "", ""),
        ("Prices", *_prices(job)),
        ("May be charged", formatting.lost(job) and f"{formatting.lost(job)}, whose answers report no price", ""),
        ("Answers of", f"job {jobs.short_id(receipt.source_job)}" if receipt.source_job else "", ""),
        ("Stored answers", _stored(job, result), ""),
        ("Imported", _imported(receipt), ""),
        ("Concurrency", f"{receipt.concurrency} per evaluator" if receipt.concurrency else "", ""),
        ("Software", f"Touchstone {receipt.software}" if receipt.software else "", ""),
        ("Plug-in", ", ".join(sorted({plan.plugin for plan in job.plan} - {""})), ""),
        ("Configuration", "", receipt.configuration[:12]),
        ("Project", str(spec.project_id) if spec.project_id else "", ""),
        ("Attempt", str(job.attempt) if job.attempt > 1 else "", ""),
    ]
    return [row for row in found if row[1] or row[2]]


def _stored(job: job_pb2.Job, result: metric_pb2.JobResult) -> str:
    """Of any job; the answers of one job and of an import have their own rows."""
    if not job.spec.reuse.any_job:
        return ""
    taken = formatting.plural(result.items_reused, "answer")
    return f"{taken}. {refusals.REUSED_WITHOUT_DIGEST}" if reused_without_digest(job, result) else taken


def _imported(receipt: job_pb2.Receipt) -> str:
    if not receipt.HasField("import_counts"):
        return ""
    counts = receipt.import_counts
    words = [formatting.plural(counts.answers, "answer")]
    if counts.unmatched:
        words.append(f"{counts.unmatched:,} match no item, the first with {formatting.shown(counts.unmatched_example)}")
    if counts.repeated:
        words.append(f"{counts.repeated:,} for items that already have one")
    return ", ".join(words)


def sampling_words(sampling: job_pb2.Sampling) -> str:
    """The parameters that were set, under the names that users write."""
    words = []
    if sampling.HasField("temperature"):
        words.append("greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}")
    words += [
        f"{one.rest} {getattr(sampling, name):g}"
        for name, one in PARAMETERS.items()
        if name != "temperature" and sampling.HasField(name)
    ]
    words += [f"{name} set" for name in further_fields.fields(sampling)]
    return ", ".join(words) or "no parameters set"


def _sent(job: job_pb2.Job) -> str:
    names = [name for plan in job.plan for name in plan.row_parameters]
    own = f"what rows ask for: {', '.join(names)}" if names else ""
    return ", and ".join(filter(None, (job.receipt.parameters, own)))


def _prices(job: job_pb2.Job) -> tuple[str, str]:
    """The source, with the table's digest for list prices."""
    if not job.receipt.HasField("prices"):
        return "", ""
    prices, longer = job.receipt.prices, job.receipt.prices.long_prompts
    words = [f"{formatting.per_million(prices)} per million tokens"]
    if prices.HasField("long_prompts"):
        words.append(
            f"of prompts above {longer.above_tokens:,} tokens ${formatting.dollars(longer.input)} in, "
            f"${formatting.dollars(longer.output)} out"
        )
    if job.spec.provider_batch:
        words.append(f"{prices.batch_share:g} of it through the batch API")
    words.append(formatting.listed_on(prices) or phrases.PRICE_SOURCES.get(prices.source, ""))
    return "; ".join(filter(None, words)), prices.table_digest[:12]


def _layers(job: job_pb2.Job) -> str:
    """The most lenient layers by which answers are read."""
    named = [name for reading in sorted({plan.reading for plan in job.plan}) if (name := reading_name(reading))]
    return " and ".join(named)


def _version(word: str) -> str:
    return f"v{word}" if word[:1].isdecimal() else word


def _asked(spec: job_pb2.JobSpec, answers: str) -> str:
    return f", {spec.suite.shots}-shot{answers}" if spec.HasField("suite") else ""


def _served(names: list[str]) -> str:
    shown = [formatting.shown(name) for name in names[:2]]
    return f"{', '.join(shown)} and {len(names) - 2} others" if len(names) > 2 else ", ".join(shown)


def _data(job: job_pb2.Job) -> list[tuple[str, str, str]]:
    """One row per data set with its revision. A mirror's SHA-256 differs from split to split: then they are counted."""
    if job.spec.HasField("dataset"):
        work = job.spec.dataset
        return [
            ("Data", work.name, work.digest[:8]),
            ("Last message", last_assistant_words(work.last_assistant), ""),
            ("Scored by", scoring_words(work.scoring), ""),
            *(("Also scored by", scoring_words(one), "") for one in work.further),
        ]
    revisions: dict[str, set[str]] = {}
    for plan in job.plan:
        revisions.setdefault(plan.data.dataset, set()).add(plan.data.revision)
    if len(revisions) > MOST_SOURCES:
        return [("Data", f"{len(revisions)} data sets, revisions in the JSON result", "")]
    return [
        ("Data" if place == 0 else "", f"{dataset}{f', {len(found)} revisions' if len(found) > 1 else ''}", code)
        for place, (dataset, found) in enumerate(revisions.items())
        for code in [next(iter(found))[:8] if len(found) == 1 else ""]
    ]


def _prompt(job: job_pb2.Job) -> tuple[str, str]:
    versions = sorted({plan.version for plan in job.plan})
    scorers = sorted({plan.scorer_version for plan in job.plan})
    hashes = {plan.prompt_hash for plan in job.plan}
    if not versions:
        return "", ""
    return f"v{', v'.join(versions)}, scorer {', '.join(_version(one) for one in scorers)}", next(iter(hashes)) if len(
        hashes
    ) == 1 else ""
