"""The wording of pages and the terminal for values of `touchstone.v1`. Pure."""

from __future__ import annotations

from touchstone.v1 import (
    dataset_pb2,
    endpoint_pb2,
    item_result_pb2,
    job_pb2,
    suite_pb2,
)

MODES = {suite_pb2.MODE_GENERATE: "generate", suite_pb2.MODE_LOGLIKELIHOOD: "log-likelihood"}
DATASET_FORMATS = {
    dataset_pb2.Dataset.FORMAT_BATCH: "OpenAI batch lines",
    dataset_pb2.Dataset.FORMAT_LINES: "lines with prompts",
    dataset_pb2.Dataset.FORMAT_COLUMNS: "lines with columns",
    dataset_pb2.Dataset.FORMAT_CSV: "CSV",
    dataset_pb2.Dataset.FORMAT_HUB: "Hub dataset",
    dataset_pb2.Dataset.FORMAT_ALPACA: "Alpaca",
    dataset_pb2.Dataset.FORMAT_SHAREGPT: "ShareGPT",
    dataset_pb2.Dataset.FORMAT_OPENAI_EVALS: "OpenAI evals",
    dataset_pb2.Dataset.FORMAT_PROMPT_COMPLETION: "prompt and completion",
    dataset_pb2.Dataset.FORMAT_QUESTION_ANSWER: "question and answer",
    dataset_pb2.Dataset.FORMAT_DPO: "preferences (DPO)",
    dataset_pb2.Dataset.FORMAT_INSPECT: "Inspect samples",
    dataset_pb2.Dataset.FORMAT_PROMPTFOO: "promptfoo tests",
}
ROWS_READ_AS = DATASET_FORMATS | {
    dataset_pb2.Dataset.FORMAT_LINES: "plain lines",
    dataset_pb2.Dataset.FORMAT_COLUMNS: "columns",
    dataset_pb2.Dataset.FORMAT_CSV: "columns",
}
"""What a file was read as."""
LAST_ASSISTANT = {
    job_pb2.LAST_ASSISTANT_REFERENCE: "is the reference, not part of the prompt",
    job_pb2.LAST_ASSISTANT_PREFILL: "starts the answer, as part of the prompt",
}
"""What became of final messages from the assistant, which is the subject."""
PRICE_SOURCES = {
    endpoint_pb2.Prices.SOURCE_ENDPOINTS_FILE: "endpoints file",
    endpoint_pb2.Prices.SOURCE_PROVIDER: "the provider's list of models",
}
"""List prices are named by their date."""
UNREAD = {
    item_result_pb2.OUTCOME_UNPARSED: "unparsed",
    item_result_pb2.OUTCOME_OUTPUT_TRUNCATED: "cut",
    item_result_pb2.OUTCOME_REFUSED: "refused",
    item_result_pb2.OUTCOME_INPUT_TRUNCATED: "input cut",
    item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR: "error",
}
"""The outcome of an item without an answer to score."""
ENDED_EARLY = {job_pb2.Job.STATE_FAILED: "failed", job_pb2.Job.STATE_CANCELLED: "was cancelled"}
"""The end of a job, which is the subject."""


def mode(value: suite_pb2.Mode) -> str:
    """How items are scored."""
    return MODES.get(value, MODES[suite_pb2.MODE_GENERATE])
