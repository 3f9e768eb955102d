"""`GET /api/bench/definition/{experiment}`: the file that starts the same experiment, or continues it."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from services.errors import NotFoundError
from services.experiments import stored_definition
from services.gateway.api.declare.endpoint import BENCH, JSON, Call, Endpoint
from services.gateway.api.experiments.run import DEFINITION
from services.gateway.fields.checks import one_of, record
from services.gateway.fields.query import Parameter
from touchstone.v1 import dataset_pb2, dataset_service_pb2, results_service_pb2

YAML = "application/yaml"
_ROWS = 500


async def definition(call: Call) -> Response:
    """The definition as `POST /api/bench/run` and `touchstone bench collect` take it, always the same bytes. 403 for
    callers who are not admins, 404 for an unknown name, and where the experiment's own scenarios were deleted."""
    request = results_service_pb2.GetExperimentRequest(name=call.path["experiment"])
    experiment = (await call.ask(call.ctx.backend.results.GetExperiment, request)).experiment
    rows = await _rows(call, experiment)
    format = call.query["format"]
    try:
        text = await asyncio.to_thread(_written, experiment, rows, format)
    except stored_definition.LostScenariosError as error:
        raise NotFoundError(str(error)) from error
    headers = {"Content-Disposition": f'attachment; filename="{experiment.name}.{format}"'}
    return Response(text, media_type=JSON if format == "json" else YAML, headers=headers)


async def _rows(call: Call, experiment: results_service_pb2.Experiment) -> list[dataset_pb2.DatasetRow]:
    rows: list[dataset_pb2.DatasetRow] = []
    request = dataset_service_pb2.ListDatasetRowsRequest(dataset_id=experiment.dataset_id, page_size=_ROWS, whole=True)
    needed = stored_definition.rows_needed(experiment)
    while len(rows) < needed:
        page = await call.ask(call.ctx.backend.datasets.ListDatasetRows, request)
        rows += page.rows
        request.page_token = page.next_page_token
        if not request.page_token:
            break
    return rows


def _written(experiment: results_service_pb2.Experiment, rows: list[dataset_pb2.DatasetRow], format: str) -> str:
    return stored_definition.written(stored_definition.value(experiment, rows), format)


EXPERIMENT_DEFINITION = Endpoint(
    "GET",
    "/definition/{experiment}",
    definition,
    "getExperimentDefinition",
    "Download the definition of an experiment, which starts the same or continues it. For admins.",
    record(DEFINITION, name="ExperimentDefinition").schema,
    media=(JSON, YAML),
    query=(Parameter("format", one_of("json", "yaml"), "How it is written.", "json"),),
    base=BENCH,
)
