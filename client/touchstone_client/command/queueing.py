"""Queues the jobs of one command: all of them or none."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.errors import ClientError

Asked = tuple[job_pb2.JobSpec, str]
"""A job and its request id."""


def queue_all(client: Client, asked: Sequence[Asked]) -> list[job_pb2.Job]:
    """The jobs, queued. Where one is refused, those before it are cancelled, which stderr tells, and the refusal is
    raised; those with a request id of the user's stay, as the same command takes them up again."""
    queued: list[job_pb2.Job] = []
    try:
        for spec, request_id in asked:
            queued.append(client.run(spec, request_id))
    except (ClientError, KeyboardInterrupt):
        for job, (_, request_id) in zip(queued, asked, strict=False):
            if request_id:
                _say(job, "is queued", "; the same command with the same --request-id goes on from there.")
            else:
                _take_back(client, job)
        raise
    return queued


def _take_back(client: Client, job: job_pb2.Job) -> None:
    try:
        client.cancel(job.job_id)
        _say(job, "was queued", " and is cancelled.")
    except ClientError as error:
        _say(job, "was queued", f" and could not be cancelled: {error.message}")


def _say(job: job_pb2.Job, state: str, rest: str) -> None:
    print(f"touchstone: {job.spec.model} {state} as job {job.job_id}{rest}", file=sys.stderr)
