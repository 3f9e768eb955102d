"""What people are told for values of the protos."""

from __future__ import annotations

import pytest

from services.words import phrases
from touchstone.v1 import dataset_pb2, endpoint_pb2, item_result_pb2, job_pb2, suite_pb2


@pytest.mark.parametrize(
    ("words", "values", "without"),
    [
        (phrases.MODES, suite_pb2.Mode.values(), {suite_pb2.MODE_UNSPECIFIED}),
        (phrases.DATASET_FORMATS, dataset_pb2.Dataset.Format.values(), {dataset_pb2.Dataset.FORMAT_UNSPECIFIED}),
        (
            phrases.LAST_ASSISTANT,
            job_pb2.LastAssistant.values(),
            {job_pb2.LAST_ASSISTANT_UNSPECIFIED, job_pb2.LAST_ASSISTANT_REFUSE},
        ),
        (
            phrases.UNREAD,
            item_result_pb2.Outcome.values(),
            {item_result_pb2.OUTCOME_UNSPECIFIED, item_result_pb2.OUTCOME_ANSWERED},
        ),
        (
            phrases.PRICE_SOURCES,
            endpoint_pb2.Prices.Source.values(),
            {endpoint_pb2.Prices.SOURCE_UNSPECIFIED, endpoint_pb2.Prices.SOURCE_LIST},
        ),
    ],
)
def test_every_value_has_words_of_its_own(words: dict[int, str], values: list[int], without: set[int]) -> None:
    assert {*words} == {*values} - without
    assert len({*words.values()}) == len(words)


def test_without_a_mode_answers_are_generated() -> None:
    assert phrases.mode(suite_pb2.MODE_UNSPECIFIED) == "generate"
    assert phrases.mode(suite_pb2.MODE_LOGLIKELIHOOD) == "log-likelihood"
