"""`/admin/datasets`: rows to ask models, uploaded or read from the Hub."""

from __future__ import annotations

from services.gateway.api.datasets.hub import HUB
from services.gateway.api.datasets.listing import DATASET_ROWS, DATASETS, DELETE_DATASET, SHOW_DATASET
from services.gateway.api.datasets.upload import UPLOAD

ENDPOINTS = (UPLOAD, HUB, DATASETS, SHOW_DATASET, DATASET_ROWS, DELETE_DATASET)
