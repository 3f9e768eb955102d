"""Words of the enums of `touchstone.v1`, as REST, the command line and exports write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from touchstone.v1 import (
    call_pb2,
    comparison_pb2,
    dataset_pb2,
    decision_pb2,
    endpoint_pb2,
    item_result_pb2,
    job_pb2,
    noise_pb2,
    results_service_pb2,
    scoring_pb2,
    suite_pb2,
    token_pb2,
    watch_pb2,
)

E = TypeVar("E", bound=int)


class Words(dict[str, E]):
    """The values of an enum by their words."""

    def __init__(self, values: Mapping[str, E]) -> None:
        super().__init__(values)
        self._words = {int(value): word for word, value in values.items()}

    def of(self, value: int, other: str = "") -> str:
        """The word of a value; `other` for a value without one."""
        return self._words.get(value, other)


def value_word(name: str, enum: str) -> str:
    """ "completed" of STATE_COMPLETED in State: values bear their enum's name, which is a rule of the protos."""
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum).upper() + "_"
    return name.removeprefix(prefix).lower()


def proto_name(enum: type[E], value: int) -> str:
    """A value's name in the protos, as hashes of configurations and item sets hold it."""
    return str(cast(Any, enum).Name(value))


def _words(enum: type[E]) -> Words[E]:
    """Of all values but 0, in their order."""
    wrapper = cast(Any, enum)
    return Words({value_word(name, wrapper.DESCRIPTOR.name): value for name, value in wrapper.items() if value})


MODES = _words(suite_pb2.Mode)
WEIGHTINGS = _words(suite_pb2.Weighting)
"""What has equal weight in a score."""
READINGS = _words(scoring_pb2.Reading)
"""Layers by which answers are read; each also takes what the ones before it take."""
ANSWER_MATCHES = _words(scoring_pb2.AnswerMatch)
PRIORITIES = _words(job_pb2.Priority)
LAST_ASSISTANT = _words(job_pb2.LastAssistant)
"""What becomes of a row's last message if it is the assistant's."""
OUTCOMES = _words(item_result_pb2.Outcome)
"""How an item may end."""
RERUN = Words({word: outcome for word, outcome in OUTCOMES.items() if word != "answered"})
"""Outcomes whose items can run again."""
DATASET_FORMATS = _words(dataset_pb2.Dataset.Format)
UPLOAD_FORMATS = Words({word: form for word, form in DATASET_FORMATS.items() if word != "hub"})
"""What an uploaded file may be."""
CALL_APIS = _words(call_pb2.Call.Api)
"""What a call through /v1 is for."""
CALL_OUTCOMES = _words(call_pb2.Call.Outcome)
"""How such a call may end."""
PREFERENCES = Words(
    {"none": results_service_pb2.Preference.CHOICE_UNSPECIFIED} | _words(results_service_pb2.Preference.Choice)
)
"""What a person may prefer of answers to a row; `none` takes a preference back."""
ITEM_FILTERS = Words(
    {"all": results_service_pb2.ListItemsRequest.FILTER_UNSPECIFIED}
    | _words(results_service_pb2.ListItemsRequest.Filter)
)
ITEM_ORDERS = Words(
    {"item": results_service_pb2.ListItemsRequest.ORDER_UNSPECIFIED}
    | _words(results_service_pb2.ListItemsRequest.Order)
)
SIDE_BY_SIDE_FILTERS = Words(
    {"all": results_service_pb2.ListSideBySideRequest.FILTER_UNSPECIFIED}
    | _words(results_service_pb2.ListSideBySideRequest.Filter)
)
DIFF_PARTS = _words(results_service_pb2.WordDiff.Part.Kind)
VERDICTS = Words(
    _words(results_service_pb2.Annotation.Verdict) | {"none": results_service_pb2.Annotation.VERDICT_UNSPECIFIED}
)
"""A person's verdict on an answer. `none` removes it; in a filter, it means items without a verdict."""
MARKS = _words(results_service_pb2.RunMark)
EXPERIMENT_SOURCES = _words(results_service_pb2.GetExperimentRequest.Source)
"""Whose scores rank models and prompts."""
EXPORT_KINDS = Words(
    {
        "jobs": results_service_pb2.ExportRequest.KIND_JOBS,
        "metrics": results_service_pb2.ExportRequest.KIND_METRICS,
        "items": results_service_pb2.ExportRequest.KIND_ITEMS,
        "batch": results_service_pb2.ExportRequest.KIND_BATCH_OUTPUT,
        "golden": results_service_pb2.ExportRequest.KIND_GOLDEN,
        "preferences": results_service_pb2.ExportRequest.KIND_PREFERENCES,
    }
)
EXPORT_FORMATS = _words(results_service_pb2.ExportRequest.Format)
FORMATS_OF_KINDS = {"batch": ("jsonl", "csv"), "golden": ("jsonl",)}
"""Formats of exports that do not support all of them; the first is the default."""
PRICE_SOURCES = _words(endpoint_pb2.Prices.Source)
ENDPOINT_STATES = _words(endpoint_pb2.Endpoint.State)
COMPARISON_VERDICTS = _words(comparison_pb2.Verdict)
DECISION_VERDICTS = _words(job_pb2.DecisionVerdict)
RACER_STATES = _words(decision_pb2.Racer.State)
WATCH_SIGNALS = _words(watch_pb2.WatchSignal)
"""What raised the alarm of a watch."""
REPLAY_VERDICTS = _words(noise_pb2.ReplayVerdict)
METRIC_RULES = _words(suite_pb2.MetricSpec.Rule)
ROLES = _words(token_pb2.Role)


def mode_name(mode: suite_pb2.Mode) -> str:
    return MODES.of(mode, "generate")


def reading_name(reading: scoring_pb2.Reading) -> str | None:
    """None for any."""
    return READINGS.of(reading) or None


def weighting_name(weighting: suite_pb2.Weighting) -> str | None:
    """None if a score comes from a single task."""
    return WEIGHTINGS.of(weighting) or None
