"""`GET /admin/datasets` and one dataset: its facts, its rows, its deletion."""

from __future__ import annotations

from services.gateway.api.answers import members
from services.gateway.api.datasets.body import DATASET, ROW, SHOWN, dataset_body
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.fields.checks import text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, OWNER, PAGE_TOKEN, PROJECT, Parameter, page_size
from services.gateway.fields.schema import COUNT, about, array, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import datasets as dataset_reads
from services.gateway.reads.datasets import row_body, what_stays
from touchstone.v1 import dataset_service_pb2

QUERY = Parameter("query", text(200), "A text in the dataset's name, in upper or lower case.", "")


async def datasets(call: Call) -> JSONResponse:
    """Newest first; filters are joined by AND and `total` counts all matches."""
    request = dataset_service_pb2.ListDatasetsRequest(
        page_size=call.query["page_size"],
        page_token=call.query["page_token"],
        owner=call.query["owner"],
        project_id=call.query["project_id"],
        query=call.query["query"],
    )
    found = await call.ask(call.ctx.backend.datasets.ListDatasets, request)
    return JSONResponse(
        {
            "datasets": [dataset_body(one) for one in found.datasets],
            "total": found.total_size,
            "next_page_token": found.next_page_token,
        }
    )


async def show(call: Call) -> JSONResponse:
    """404 for one that does not exist or was deleted."""
    request = dataset_service_pb2.GetDatasetRequest(dataset_id=call.dataset_id)
    found = await call.ask(call.ctx.backend.datasets.GetDataset, request)
    return JSONResponse(
        dataset_body(found.dataset) | {"live_runs": found.live_jobs, "finished_runs": found.finished_jobs}
    )


async def rows(call: Call) -> JSONResponse:
    """Rows in order, texts cut to 2 KB."""
    request = dataset_service_pb2.ListDatasetRowsRequest(
        dataset_id=call.dataset_id, page_size=call.query["page_size"], page_token=call.query["page_token"]
    )
    found = await call.ask(call.ctx.backend.datasets.ListDatasetRows, request)
    return JSONResponse(
        {
            "rows": [row_body(number, row) for number, row in enumerate(found.rows, found.first)],
            "next_page_token": found.next_page_token,
        }
    )


async def delete(call: Call) -> JSONResponse:
    """Its finished runs keep results and answers, and can no longer be scored again: the answer counts them, and so
    does the dataset beforehand. 404 for an unknown one, 409 while a run uses it."""
    done = await dataset_reads.delete(call.ctx.backend, call.dataset_id, call.caller)
    message = f"Dataset {call.dataset_id} deleted"
    if stays := what_stays(done.finished_jobs):
        message += f". {stays}"
    return JSONResponse({"message": message, "finished_runs": done.finished_jobs})


DATASETS = Endpoint(
    "GET",
    "/datasets",
    datasets,
    "listDatasets",
    "List datasets, newest first.",
    answer=shape(
        {
            "datasets": about(array(DATASET), "Newest first."),
            "total": about(COUNT, "The number of all matches."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="Datasets",
    ),
    query=(QUERY, PROJECT, OWNER, page_size(100, 500), PAGE_TOKEN),
    gives={"dataset_id": "/datasets/0/id"},
    base=ADMIN,
)
SHOW_DATASET = Endpoint("GET", "/datasets/{dataset_id}", show, "getDataset", "Get a dataset.", answer=SHOWN, base=ADMIN)
DATASET_ROWS = Endpoint(
    "GET",
    "/datasets/{dataset_id}/rows",
    rows,
    "listDatasetRows",
    "List a dataset's rows in order, with texts cut to 2 KB.",
    answer=shape(
        {"rows": about(array(ROW), "The rows in their order."), "next_page_token": NEXT_PAGE_TOKEN}, name="DatasetRows"
    ),
    query=(page_size(20, 500), PAGE_TOKEN),
    base=ADMIN,
)
DELETE_DATASET = Endpoint(
    "DELETE",
    "/datasets/{dataset_id}",
    delete,
    "deleteDataset",
    "Delete a dataset that no run uses. Its finished runs keep their results and answers.",
    answer=shape(
        {
            "message": members.MESSAGE,
            "finished_runs": about(COUNT, "Finished runs that can no longer be scored again."),
        },
        name="DeletedDataset",
    ),
    errors=(409,),
    base=ADMIN,
)
