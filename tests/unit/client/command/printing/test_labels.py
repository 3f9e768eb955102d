"""What jobs are called in one table."""

from __future__ import annotations

from touchstone.v1 import job_pb2
from touchstone_client.command.printing.labels import distinct, labels


def test_jobs_are_called_by_what_tells_them_apart() -> None:
    one = job_pb2.Job(job_id="0-000001", spec=job_pb2.JobSpec(model="m", endpoint="left"))
    two = job_pb2.Job(job_id="0-000002", spec=job_pb2.JobSpec(model="n", endpoint="left"))
    three = job_pb2.Job(job_id="0-000003", spec=job_pb2.JobSpec(model="m", endpoint="right"))
    again = job_pb2.Job(job_id="0-000004", spec=one.spec)

    assert [*labels([one, two]).values()] == ["m", "n"]
    assert [*labels([one, three]).values()] == ["m@left", "m@right"]
    assert [*labels([one, again]).values()] == ["m …000001", "m …000004"]


def test_a_name_without_an_endpoint_stands_alone() -> None:
    assert distinct({"1": ("m", ""), "2": ("m", "right")}) == {"1": "m", "2": "m@right"}
