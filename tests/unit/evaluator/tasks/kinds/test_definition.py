"""What a split must be for a task to use it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from services.evaluator.data.reader import DataError
from services.evaluator.tasks.kinds.definition import check_range


def test_labels_within_the_range_are_taken() -> None:
    check_range(pa.chunked_array([[0.0, 5.0]]), 0, 5, "stsb")


@pytest.mark.parametrize(
    ("labels", "said"), [([1.0, None], "row 1 has no label"), ([-1.0, 5.0], "labels run from -1 to 5, not within 0–5")]
)
def test_labels_that_are_missing_or_out_of_range_are_refused(labels: list[float | None], said: str) -> None:
    with pytest.raises(DataError, match=f"^stsb cannot be used: {said}"):
        check_range(pa.chunked_array([labels]), 0, 5, "stsb")
