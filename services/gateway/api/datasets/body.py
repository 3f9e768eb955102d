"""A dataset and its rows as answers give them."""

from __future__ import annotations

from typing import Any

from services import further
from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.datasets import scoring
from services.gateway.api.schema import COUNT, OBJECT, STRING, TIME, Schema, about, array, enum, null, shape
from services.gateway.parameters import PARAMETERS
from touchstone.v1 import dataset_pb2, job_pb2

FORMATS = {
    "batch": dataset_pb2.Dataset.FORMAT_BATCH,
    "lines": dataset_pb2.Dataset.FORMAT_LINES,
    "columns": dataset_pb2.Dataset.FORMAT_COLUMNS,
    "csv": dataset_pb2.Dataset.FORMAT_CSV,
    "hub": dataset_pb2.Dataset.FORMAT_HUB,
}
_FORMAT_NAMES = {number: name for name, number in FORMATS.items()}
LAST_ASSISTANT = {
    "reference": job_pb2.LAST_ASSISTANT_REFERENCE,
    "prefill": job_pb2.LAST_ASSISTANT_PREFILL,
    "refuse": job_pb2.LAST_ASSISTANT_REFUSE,
}
_LAST_ASSISTANT_NAMES = {number: name for name, number in LAST_ASSISTANT.items()}
ID: Schema = {"type": "string", "pattern": "^ds_[0-9a-f]{32}$"}

_MEMBERS: dict[str, Schema] = {
    "name": STRING,
    "count": about(COUNT, "Rows."),
    "uploaded_at": null(TIME),
    "owner": STRING,
    "project_id": COUNT,
    "format": null(enum(*FORMATS)),
    "bytes": about(COUNT, "Uploaded, decompressed."),
    "digest": about(STRING, "SHA-256 over the rows: equal content has an equal digest."),
    "rows_with_reference": COUNT,
    "prompt_characters": COUNT,
    "input_tokens": about(COUNT, "Estimate for all rows: a token for four bytes, and four for each message."),
    "longest_prompt_bytes": COUNT,
    "metadata_fields": array(STRING),
    "scoring": about(scoring.BODY, "How answers are scored unless a run says otherwise."),
    "template": null(STRING),
    "source": null(shape({"dataset": STRING, "config": STRING, "split": STRING, "revision": STRING})),
    "models": about(array(STRING), "Models that batch lines name; a run's own counts."),
    "last_assistant": about(
        null(enum("reference", "prefill")),
        "What became of last messages of the assistant's; null where no row has one.",
    ),
    "rows_with_last_assistant": about(COUNT, "Rows that had one."),
    "most_max_tokens": about(null(COUNT), "The most that a row asks for; null where some row sets none."),
}
DATASET = shape({"id": ID} | _MEMBERS, name="Dataset")
SHOWN = shape(
    {"id": ID}
    | _MEMBERS
    | {
        "live_runs": about(COUNT, "Runs over it that are not finished."),
        "finished_runs": about(COUNT, "Runs over it that are: scored again only while it is kept."),
    },
    name="DatasetDetail",
)
UPLOADED = shape({"dataset_id": ID} | _MEMBERS, name="UploadedDataset")


def what_stays(finished: int) -> str:
    """What becomes of the finished runs when their dataset is deleted; empty without any."""
    if not finished:
        return ""
    runs = "1 finished run keeps its" if finished == 1 else f"{finished:,} finished runs keep their"
    return f"{runs} results and answers, but can no longer be scored again"


def dataset_body(dataset: dataset_pb2.Dataset) -> dict[str, Any]:
    return {"id": dataset.dataset_id} | _members(dataset)


def uploaded_body(dataset: dataset_pb2.Dataset) -> dict[str, Any]:
    return {"dataset_id": dataset.dataset_id} | _members(dataset)


def _members(dataset: dataset_pb2.Dataset) -> dict[str, Any]:
    source = dataset.source
    return {
        "name": dataset.name,
        "count": dataset.rows,
        "uploaded_at": jobs.iso(dataset.uploaded_at),
        "owner": dataset.owner,
        "project_id": dataset.project_id,
        "format": _FORMAT_NAMES.get(dataset.format),
        "bytes": dataset.bytes,
        "digest": dataset.digest,
        "rows_with_reference": dataset.rows_with_reference,
        "prompt_characters": dataset.prompt_characters,
        "input_tokens": dataset.input_tokens,
        "longest_prompt_bytes": dataset.longest_prompt_bytes,
        "metadata_fields": list(dataset.metadata_fields),
        "scoring": scoring.scoring_body(dataset.scoring),
        "template": dataset.template or None,
        "source": {
            "dataset": source.dataset,
            "config": source.config,
            "split": source.split,
            "revision": source.revision,
        }
        if dataset.HasField("source")
        else None,
        "models": list(dataset.models),
        "last_assistant": _LAST_ASSISTANT_NAMES.get(dataset.last_assistant),
        "rows_with_last_assistant": dataset.rows_with_last_assistant,
        "most_max_tokens": dataset.most_max_tokens or None,
    }


ROW = shape(
    {
        "row": about(COUNT, "Place in the dataset, from 0."),
        "custom_id": STRING,
        "messages": array(shape({"role": STRING, "content": STRING})),
        "parameters": about(null(OBJECT), "What the row itself asks for; it counts before the run's."),
        "stop": array(STRING),
        "reference": about({}, "The right answer as JSON, cut to text where it is long; null without one."),
        "metadata": about({}, "An object, cut to text where it is long; null without one."),
    },
    name="DatasetRow",
)


def row_body(number: int, row: dataset_pb2.DatasetRow) -> dict[str, Any]:
    return {
        "row": number,
        "custom_id": row.custom_id,
        "messages": [{"role": message.role, "content": message.content} for message in row.messages],
        "parameters": sampling_body(row.sampling) if row.HasField("sampling") else None,
        "stop": list(row.stop),
        "reference": figures.parsed(row.reference),
        "metadata": figures.parsed(row.metadata),
    }


def sampling_body(sampling: job_pb2.Sampling) -> dict[str, Any]:
    """The parameters that are set, by their names in the API; further fields of a request as `custom_config`."""
    body = {one.name: getattr(sampling, one.field) for one in PARAMETERS if sampling.HasField(one.field)}
    custom = further.fields(sampling)
    return body | ({"custom_config": custom} if custom else {})
