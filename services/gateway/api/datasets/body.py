"""A dataset and its rows as answers give them."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import members
from services.gateway.fields import scoring
from services.gateway.fields.schema import COUNT, OBJECT, STRING, TIME, Schema, about, array, enum, null, shape
from services.gateway.reads import jobs
from services.gateway.reads.datasets import row_body
from services.words.enums import DATASET_FORMATS, LAST_ASSISTANT
from touchstone.v1 import dataset_pb2, dataset_service_pb2

_ID = about({"type": "string", "pattern": "^ds_[0-9a-f]{32}$"}, "The dataset's id.")

_MEMBERS: dict[str, Schema] = {
    "name": about(STRING, "The dataset's name."),
    "count": about(COUNT, "The number of rows."),
    "uploaded_at": about(null(TIME), "When it was stored."),
    "expires_at": about(null(TIME), "When it is deleted. null if it stays until somebody deletes it."),
    "owner": members.OWNER,
    "project_id": members.PROJECT_ID,
    "format": about(null(enum(*DATASET_FORMATS)), "What the rows were. `hub`: a split of the Hub."),
    "reading": about(null(STRING), "What the file was, and what became prompt and reference. null if not known."),
    "bytes": about(COUNT, "The size of the upload, decompressed."),
    "digest": about(STRING, "The SHA-256 of the rows. Equal rows have equal digests."),
    "rows_with_reference": about(COUNT, "Rows with a reference."),
    "groups": about(COUNT, "Groups that the rows make by `group_field` of `scoring`. 0 without one."),
    "prompt_characters": about(COUNT, "Characters of all prompts."),
    "input_tokens": about(
        COUNT, "An estimate for all prompts: a token per four bytes, four per message, 1,000 per image."
    ),
    "longest_prompt_bytes": about(COUNT, "The size of the longest prompt."),
    "metadata_fields": about(array(STRING), "The names of the rows' metadata fields."),
    "scoring": about(scoring.BODY, "How answers are scored unless a run says otherwise."),
    "template": about(null(STRING), "The template that made messages of columns."),
    "source": about(
        null(
            shape(
                {
                    "dataset": about(STRING, "The data set's id on the Hub."),
                    "config": about(STRING, "Its configuration."),
                    "split": about(STRING, "Its split."),
                    "revision": about(STRING, "The revision that was read."),
                }
            )
        ),
        "Where a split of the Hub came from. null for uploads.",
    ),
    "models": about(array(STRING), "The models that batch lines name. A run names its own model."),
    "last_assistant": about(
        null(enum("reference", "prefill")), "What the assistant's last messages became. null if no row had one."
    ),
    "rows_with_last_assistant": about(COUNT, "Rows whose last message was the assistant's."),
    "most_max_tokens": about(null(COUNT), "The largest `max_tokens` of a row. null if a row sets none."),
}
DATASET = shape({"id": _ID} | _MEMBERS, name="Dataset")
SHOWN = shape(
    {"id": _ID}
    | _MEMBERS
    | {
        "live_runs": about(COUNT, "Unfinished runs over it."),
        "finished_runs": about(
            COUNT, "Finished runs over it. They can be scored again only while the dataset is kept."
        ),
    },
    name="DatasetDetail",
)
UPLOADED = shape({"dataset_id": _ID} | _MEMBERS, name="UploadedDataset")


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
        "expires_at": jobs.iso(dataset.expires_at),
        "owner": dataset.owner,
        "project_id": dataset.project_id,
        "format": DATASET_FORMATS.of(dataset.format) or None,
        "reading": dataset.reading or None,
        "bytes": dataset.bytes,
        "digest": dataset.digest,
        "rows_with_reference": dataset.rows_with_reference,
        "groups": dataset.groups,
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
        "last_assistant": LAST_ASSISTANT.of(dataset.last_assistant) or None,
        "rows_with_last_assistant": dataset.rows_with_last_assistant,
        "most_max_tokens": dataset.most_max_tokens or None,
    }


MESSAGE = shape(
    {
        "role": about(STRING, "Who speaks."),
        "content": about(
            {},
            "What they say: a text, or a list of parts. An image is named by its type, size and SHA-256. null of a "
            "message that only calls tools.",
        ),
        "tool_calls": members.TOOL_CALLS,
        "tool_call_id": about(STRING, "The call that this message of a tool is the result of."),
        "name": about(STRING, "The tool's name, where the row gives it."),
    },
    name="ChatMessage",
    optional=("tool_calls", "tool_call_id", "name"),
)
ROW = shape(
    {
        "row": about(COUNT, "The row's place in the dataset, from 0."),
        "custom_id": about(STRING, "The row's id."),
        "messages": about(
            array(MESSAGE),
            "The messages of the prompt, as OpenAI's API has them.",
        ),
        "parameters": about(null(OBJECT), "The row's sampling parameters, which come before those of a run."),
        "stop": about(array(STRING), "The row's stop texts."),
        "reference": about({}, "The right answer. A long one is cut to a text. null without one."),
        "metadata": about({}, "The row's metadata. A long object is cut to a text. null without any."),
    },
    name="DatasetRow",
)
PREVIEWED = shape(
    {
        "reading": about(null(STRING), "What the file is, and what becomes prompt and reference. null with `why`."),
        "format": about(null(enum(*DATASET_FORMATS)), "What the rows are. null if `why` is set."),
        "rows": about(COUNT, "The rows of the file, as many as were read."),
        "rows_that_fit": about(COUNT, "Those that fit. An upload needs all of them to fit."),
        "rows_with_reference": about(COUNT, "Rows that fit and have a reference."),
        "groups": about(COUNT, "Groups that the rows that fit make by `group_field`. 0 without one."),
        "input_tokens": about(COUNT, "An estimate for all prompts."),
        "first_rows": about(array(ROW), "The first rows that fit, at most 5, with texts cut to 2 KB."),
        "lines": about(
            array(
                shape(
                    {
                        "line": about(COUNT, "The line; of an array, a workbook and Parquet the row."),
                        "reason": about(STRING, "Why the row does not fit, and what to do."),
                    },
                    name="WrongRow",
                )
            ),
            "Rows that do not fit, at most 100.",
        ),
        "bad_lines": about(COUNT, "The number of rows that do not fit."),
        "reasons": about(
            array(
                shape(
                    {
                        "reason": about(
                            STRING,
                            "Why the rows do not fit, and what to do. `…` replaces quoted values and numbers that "
                            "differ.",
                        ),
                        "count": about(COUNT, "The number of rows with this fault in the whole file."),
                        "lines": about(array(COUNT), "The lines of the first of them, at most 20."),
                    },
                    name="WrongRowReason",
                )
            ),
            "Rows that do not fit by reason, the most frequent first, at most 100 reasons.",
        ),
        "other_lines": about(COUNT, "The number of rows that do not fit with none of these reasons."),
        "columns": about(array(STRING), "The names in the first row, at most 100."),
        "sheets": about(array(STRING), "The visible sheets of an Excel workbook, at most 100. Empty for other files."),
        "readings": about(
            array(
                shape(
                    {
                        "format": about(enum(*DATASET_FORMATS), "The value of the option `format`."),
                        "reading": about(STRING, "What becomes prompt and reference."),
                    },
                    name="DatasetReading",
                )
            ),
            "Every reading that the first row allows.",
        ),
        "why": about(null(STRING), "Why an upload with these options would be refused, and what to do."),
        "field": about(null(STRING), "The option that `why` is about."),
    },
    name="DatasetPreview",
)


def preview_body(found: dataset_service_pb2.PreviewDatasetResponse) -> dict[str, Any]:
    dataset = found.dataset
    return {
        "reading": dataset.reading or None,
        "format": DATASET_FORMATS.of(dataset.format) or None,
        "rows": found.rows_found,
        "rows_that_fit": dataset.rows,
        "rows_with_reference": dataset.rows_with_reference,
        "groups": dataset.groups,
        "input_tokens": dataset.input_tokens,
        "first_rows": [row_body(number, row) for number, row in enumerate(found.first_rows)],
        "lines": [{"line": bad.line, "reason": bad.reason} for bad in found.bad_lines],
        "bad_lines": found.bad_lines_total,
        "reasons": [{"reason": one.reason, "count": one.count, "lines": list(one.lines)} for one in found.reasons],
        "other_lines": found.other_lines,
        "columns": list(found.columns),
        "sheets": list(found.sheets),
        "readings": [{"format": DATASET_FORMATS.of(one.format), "reading": one.reading} for one in found.readings],
        "why": found.why or None,
        "field": found.field or None,
    }
