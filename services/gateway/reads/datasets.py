"""Datasets as REST and pages both read them: their rows, and the effect of deletion on runs."""

from __future__ import annotations

from typing import Any

from services import further_fields, rpc
from services.errors import TouchstoneError
from services.gateway.backend import Backend
from services.gateway.reads import jobs, values
from services.words import chat
from services.words.sampling import PARAMETERS
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2, results_service_pb2

_DELETE_TIMEOUT_S = 30.0


async def delete(backend: Backend, dataset_id: str, caller: rpc.Identity) -> dataset_service_pb2.DeleteDatasetResponse:
    """Raises NotFoundError for an unknown one, ConflictError while a run uses it."""
    request = dataset_service_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
    return await backend.ask(backend.datasets.DeleteDataset, request, caller, timeout_s=_DELETE_TIMEOUT_S)


def what_stays(finished: int) -> str:
    """What becomes of the finished runs when their dataset is deleted; empty without any."""
    if not finished:
        return ""
    runs = "1 finished run keeps its" if finished == 1 else f"{finished:,} finished runs keep their"
    return f"{runs} results and answers, but can no longer be scored again"


def row_body(number: int, row: dataset_pb2.DatasetRow) -> dict[str, Any]:
    return {
        "row": number,
        "custom_id": row.custom_id,
        "messages": [chat.written(message) for message in row.messages],
        "parameters": sampling_body(row.sampling) if row.HasField("sampling") else None,
        "stop": list(row.stop),
        "reference": values.parsed(row.reference),
        "metadata": values.parsed(row.metadata),
    }


def sampling_body(sampling: job_pb2.Sampling) -> dict[str, Any]:
    """The parameters that are set, by their names in the API; further fields of a request as `custom_config`."""
    body = {one.rest: getattr(sampling, name) for name, one in PARAMETERS.items() if sampling.HasField(name)}
    custom = further_fields.fields(sampling)
    return body | ({"custom_config": custom} if custom else {})


async def name_of(backend: Backend, suite: str, caller: rpc.Identity) -> str:
    """A dataset's name by its id, of a deleted one from its newest run; other names as they are."""
    if not jobs.is_dataset(suite):
        return suite
    try:
        call = dataset_service_pb2.GetDatasetRequest(dataset_id=suite)
        return (await backend.ask(backend.datasets.GetDataset, call, caller)).dataset.name
    except TouchstoneError:
        pass
    try:
        runs = results_service_pb2.ResultsServiceListJobsRequest(suite=suite, page_size=1, without_counts=True)
        found = (await backend.ask(backend.results.ListJobs, runs, caller)).jobs
    except TouchstoneError:
        return suite
    return found[0].spec.dataset.name if found else suite
