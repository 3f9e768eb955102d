"""Pages of uploaded datasets: upload and list, one dataset with its runs, the form that starts them."""

from __future__ import annotations

from starlette.routing import Route

from services.gateway.middleware import UPLOAD_PAGE
from services.gateway.pages.datasets.listing import delete, index, upload
from services.gateway.pages.datasets.page import runs, show, start

routes = [
    Route("/datasets", index),
    Route(UPLOAD_PAGE, upload, methods=["POST"]),
    Route("/datasets/{dataset_id}", show),
    Route("/datasets/{dataset_id}/runs", runs),
    Route("/datasets/{dataset_id}/run", start, methods=["POST"]),
    Route("/datasets/{dataset_id}/delete", delete, methods=["POST"]),
]
