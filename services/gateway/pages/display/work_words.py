"""What a job runs, in words: suites and datasets by their names, and the facts of a dataset."""

from __future__ import annotations

from services.gateway.pages.display import formatting
from services.words import jobs, phrases
from services.words.refusals import counted
from services.words.scorers import SCORERS, USUAL, needs_references
from touchstone.v1 import dataset_pb2, job_pb2, scoring_pb2

_TITLES = {
    "arc": "ARC",
    "bbh": "BIG-Bench Hard",
    "glue": "GLUE",
    "gsm8k": "GSM8K",
    "hellaswag": "HellaSwag",
    "mmlu": "MMLU",
    "mmlu_pro": "MMLU-Pro",
    "superglue": "SuperGLUE",
}
"""Of suites whose title is not their name with a capital letter."""


def facts(dataset: dataset_pb2.Dataset) -> list[tuple[str, str, str]]:
    """(name, what, code) for each, without empty ones."""
    source = dataset.source
    of_hub = "/".join(filter(None, (source.dataset, source.config, source.split))) if dataset.HasField("source") else ""
    longest = f"up to {counted(dataset.longest_prompt_bytes, 'byte')} each" if dataset.longest_prompt_bytes else ""
    found = [
        ("Rows", f"{dataset.rows:,}", ""),
        ("Reference", _with_reference(dataset), ""),
        ("Groups", f"{dataset.groups:,} by {dataset.scoring.group_field}" if dataset.groups else "", ""),
        ("Last message", _last_messages(dataset), ""),
        ("Scored by", scoring_words(dataset.scoring) if is_scored(dataset) else "", ""),
        ("Size", formatting.size(dataset.bytes), ""),
        ("Tokens", f"about {dataset.input_tokens:,} to read" if dataset.input_tokens else "", ""),
        ("Prompts", longest, ""),
        (
            "Answers",
            f"at most {counted(dataset.most_max_tokens, 'token')}, by row" if dataset.most_max_tokens else "",
            "",
        ),
        ("Format", dataset.reading or phrases.DATASET_FORMATS.get(dataset.format, ""), ""),
        ("From", of_hub, source.revision[:12]),
        ("Metadata", ", ".join(dataset.metadata_fields), ""),
        ("Models", f"rows name {', '.join(dataset.models)}; the run's own counts" if dataset.models else "", ""),
        ("Uploaded", f"{formatting.stamp(dataset.uploaded_at)} by {dataset.owner}", ""),
        ("Expires", formatting.stamp(dataset.expires_at) if dataset.HasField("expires_at") else "", ""),
        ("Project", str(dataset.project_id) if dataset.project_id else "", ""),
        ("Digest", "", dataset.digest[:12]),
        ("Id", "", dataset.dataset_id),
    ]
    return [fact for fact in found if fact[1] or fact[2]]


def is_scored(dataset: dataset_pb2.Dataset) -> bool:
    """Whether runs over it have scores."""
    return dataset.rows_with_reference > 0 or not needs_references(dataset.scoring)


def scorer_name(scorer: str) -> str:
    """The scorer in words; the default's for an empty name."""
    return SCORERS.get(scorer or USUAL, scorer)


def scoring_words(scoring: scoring_pb2.Scoring) -> str:
    """How answers are scored, with what differs from the scorer's default."""
    choices = f"of {', '.join(scoring.choices)}" if scoring.choices else ""
    relative = " of the reference" if scoring.tolerance_is_relative else ""
    tolerance = f"within {scoring.tolerance:g}{relative}" if scoring.tolerance else ""
    fields = f"of {', '.join(scoring.fields)}" if scoring.fields else ""
    match = "the first match of " if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST else ""
    pattern = f"answer found by {match}{scoring.answer_pattern}" if scoring.answer_pattern else ""
    reference = f"reference in {scoring.reference_field}" if scoring.reference_field else ""
    groups = f"groups by {scoring.group_field}" if scoring.group_field else ""
    fields = "by a schema of its own" if scoring.schema else fields
    said = (scorer_name(scoring.scorer), choices, tolerance, fields, pattern, reference, groups)
    return ", ".join(filter(None, said))


def scorings_words(work: job_pb2.DatasetWork) -> str:
    """As `scoring_words`, with further scorers."""
    return "; also ".join(map(scoring_words, (work.scoring, *work.further)))


def last_assistant_words(done: job_pb2.LastAssistant) -> str:
    """What became of final messages from the assistant; empty if no row had one."""
    return f"the assistant's {phrases.LAST_ASSISTANT[done]}" if done in phrases.LAST_ASSISTANT else ""


def _last_messages(dataset: dataset_pb2.Dataset) -> str:
    words, rows = last_assistant_words(dataset.last_assistant), dataset.rows_with_last_assistant
    return f"{words}, in {rows:,} of {dataset.rows:,} rows" if words and rows < dataset.rows else words


def _with_reference(dataset: dataset_pb2.Dataset) -> str:
    if not is_scored(dataset):
        return "none: answers are read and compared, not scored"
    if not dataset.rows_with_reference:
        return "none: answers are checked by the schema of their row"
    if dataset.rows_with_reference == dataset.rows:
        return "in every row"
    return f"in {dataset.rows_with_reference:,} of {dataset.rows:,} rows"


def work_of(job: job_pb2.Job) -> str:
    """The suite's or the dataset's name."""
    return jobs.work_of(job.spec)


def dataset_of(job: job_pb2.Job) -> str:
    """The dataset's id; empty for other work."""
    return job.spec.dataset.dataset_id


def heading(job: job_pb2.Job) -> str:
    """As `work_of`, for a heading. A dataset's name is shown as it is written."""
    name = work_of(job)
    if dataset_of(job):
        return name
    return _TITLES.get(name) or name.title()
