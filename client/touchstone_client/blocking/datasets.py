"""Uploaded datasets: upload, show, run, delete."""

# Made from asynchronous/datasets.py. Change that file, then run: make blocking

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Unpack

from services.words.job_options import DatasetJobOptions
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2, scoring_pb2, suite_pb2
from touchstone_client import requests, uploading
from touchstone_client.blocking.installation import Installation
from touchstone_client.blocking.jobs import Jobs
from touchstone_client.specs import dataset_spec
from touchstone_client.uploading import DatasetOptions, Source


class Datasets(Jobs, Installation):
    """Users' own rows to run models on."""

    def upload_dataset(
        self,
        source: Source,
        *,
        sent: Callable[[int], object] | None = None,
        request_id: str = "",
        **options: Unpack[DatasetOptions],
    ) -> dataset_pb2.Dataset:
        """Uploads a file's rows, all or none; it is read while it is sent. `sent` is called with the bytes sent so far.
        The same rows with the same request id return the dataset that already exists.

        InvalidError for an invalid file: its `lines` say which lines are wrong and why.
        """
        with uploading.messages(source, options, sent, request_id) as made:
            stored = self._send(
                made,
                dataset_service_pb2.UploadDatasetRequest,
                dataset_service_pb2.UploadDatasetResponse,
                requests.UPLOAD_S,
            )
        return stored.dataset

    def preview_dataset(
        self, source: Source, *, sent: Callable[[int], object] | None = None, **options: Unpack[DatasetOptions]
    ) -> dataset_service_pb2.PreviewDatasetResponse:
        """What `upload_dataset` would make of the file, of which nothing is kept: how rows are read, how many fit, and
        which do not. Where the file could be read with other options, `why` says which. InvalidError otherwise."""
        with uploading.preview_messages(source, options, sent) as made:
            return self._send(
                made,
                dataset_service_pb2.PreviewDatasetRequest,
                dataset_service_pb2.PreviewDatasetResponse,
                requests.UPLOAD_S,
            )

    def create_hub_dataset(
        self,
        dataset: str,
        *,
        template: str,
        config: str = "",
        split: str = "",
        revision: str = "",
        limit: int = 0,
        name: str = "",
        scoring: scoring_pb2.Scoring | None = None,
        project_id: int = 0,
        custom_id_field: str = "",
        last_assistant: str = "",
        request_id: str = "",
    ) -> dataset_pb2.Dataset:
        """Uploads a split of a Hub dataset; `limit` keeps only that many first rows, 0 means all. The same request id
        returns the dataset that already exists."""
        options: DatasetOptions = {
            "name": name,
            "template": template,
            "project_id": project_id,
            "custom_id_field": custom_id_field,
            "last_assistant": last_assistant,
        }
        if scoring is not None:
            options["scoring"] = scoring
        source = suite_pb2.DataSource(dataset=dataset, config=config, split=split, revision=revision)
        request = requests.create_hub_dataset(source, options, limit, request_id)
        answer = self._ask(request, dataset_service_pb2.CreateHubDatasetResponse, requests.HUB_S)
        return answer.dataset

    def dataset(self, dataset_id: str) -> dataset_service_pb2.GetDatasetResponse:
        """A dataset, and how many unfinished and finished jobs are over it."""
        request = dataset_service_pb2.GetDatasetRequest(dataset_id=dataset_id)
        return self._ask(request, dataset_service_pb2.GetDatasetResponse)

    def datasets(self, query: str = "", *, owner: str = "", project_id: int = 0) -> Iterator[dataset_pb2.Dataset]:
        """Newest first. `query` is a part of the name."""
        request = dataset_service_pb2.ListDatasetsRequest(
            query=query, owner=owner, project_id=project_id, page_size=100
        )
        for page in self._pages(request, dataset_service_pb2.ListDatasetsResponse):
            yield from page.datasets

    def dataset_rows(self, dataset_id: str) -> Iterator[dataset_pb2.DatasetRow]:
        """Rows in order, texts cut to 2 KB."""
        request = dataset_service_pb2.ListDatasetRowsRequest(dataset_id=dataset_id, page_size=100)
        for page in self._pages(request, dataset_service_pb2.ListDatasetRowsResponse):
            yield from page.rows

    def delete_dataset(self, dataset_id: str) -> dataset_service_pb2.DeleteDatasetResponse:
        """Removes the rows. Finished jobs over them, counted in the answer, keep results and answers, and cannot be
        scored again. StateError while a job uses them."""
        request = dataset_service_pb2.DeleteDatasetRequest(dataset_id=dataset_id)
        return self._ask(request, dataset_service_pb2.DeleteDatasetResponse)

    def run_dataset(
        self,
        dataset_id: str,
        models: Iterable[str],
        *,
        endpoint: str = "",
        request_id: str = "",
        judges: Sequence[job_pb2.Judge] = (),
        **options: Unpack[DatasetJobOptions],
    ) -> list[job_pb2.Job]:
        """Queues a job for each model, given as `model`, if just one endpoint has it, or as `model@endpoint`; the rest
        as in `dataset_spec`. All or none. The same request id returns the same jobs.
        """
        specs = [
            dataset_spec(dataset_id, endpoint=target.endpoint, model=target.model, judges=judges, **options)
            for target in self.targets(models, endpoint)
        ]
        return self.run_all(specs, request_id)
