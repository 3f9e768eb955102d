"""Rows of datasets, and what is said of runs over a deleted one."""

from __future__ import annotations

import pytest

from services.gateway.reads.datasets import row_body, what_stays
from touchstone.v1 import dataset_pb2, job_pb2


@pytest.mark.parametrize(
    ("finished", "begins"), [(0, ""), (1, "1 finished run keeps its"), (1200, "1,200 finished runs keep their")]
)
def test_runs_over_a_deleted_dataset_are_counted(finished: int, begins: str) -> None:
    assert what_stays(finished).startswith(begins)
    assert bool(what_stays(finished)) == bool(finished)


def test_a_row_names_the_parameters_that_it_sets_as_the_api_does() -> None:
    plain = row_body(3, dataset_pb2.DatasetRow(custom_id="r"))
    asking = dataset_pb2.DatasetRow(sampling=job_pb2.Sampling(max_tokens=7), reference='"yes"')

    assert (plain["row"], plain["custom_id"], plain["parameters"], plain["reference"]) == (3, "r", None, None)
    assert (row_body(0, asking)["parameters"], row_body(0, asking)["reference"]) == ({"num_predict": 7}, "yes")
