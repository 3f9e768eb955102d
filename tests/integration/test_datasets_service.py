"""DatasetService over gRPC: what callers send and get, who may see and delete, and the service's own process."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from deploy.local.ports import free_port
from services import bus, rpc
from services.bus import contract
from services.errors import BadLinesError, NoRoomError
from services.results import visibility
from services.results.intake import writes
from tests.integration.evaluator_rig import until
from tests.integration.kept_datasets import Keeper, keeping, lines
from tests.integration.test_results_service import Service
from tests.nats_server import NatsServer
from tests.unit.results.builders import event, job
from touchstone.v1 import dataset_pb2, dataset_service_pb2_grpc, job_pb2, suite_pb2, token_pb2
from touchstone.v1 import dataset_service_pb2 as pb
from touchstone.v1.dataset_service_pb2_grpc import DatasetServiceStub

NAME = pb.DESCRIPTOR.services_by_name["DatasetService"].full_name
PIECE = 900_000


@asynccontextmanager
async def serving(nats: NatsServer, folder: Path, reads: str) -> AsyncIterator[tuple[Keeper, str]]:
    """Where callers are the users that their tokens name; "root" is an admin, "machine" a service."""
    roles = {"root": token_pb2.ROLE_ADMIN, "machine": token_pb2.ROLE_SERVICE}
    known = {
        rpc.token_digest(user): token_pb2.Token(user=user, role=roles.get(user, token_pb2.ROLE_USER))
        for user in ("ann", "bob", "root", "machine")
    }

    async def lookup(digest: str) -> token_pb2.Token | None:
        return known.get(digest)

    address = f"127.0.0.1:{free_port()}"
    register = dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server
    async with keeping(nats.url, folder / "results.duckdb", reads=reads) as keeper:
        services = [(register, keeper.datasets.servicer, NAME)]
        async with rpc.serve(address, rpc.Authenticator(lookup, "secret"), services):
            yield keeper, address


class Caller:
    """A user of the service at an address."""

    def __init__(self, channel: grpc.aio.Channel, user: str) -> None:
        self.stub = DatasetServiceStub(channel)
        self.metadata = (("authorization", f"Bearer {user}"),)

    async def upload(self, content: bytes, request_id: str = "", **options: object) -> dataset_pb2.Dataset:
        asked = dataset_pb2.DatasetOptions(**({"name": "rows.jsonl"} | options))  # type: ignore[arg-type]

        def requests() -> Iterator[pb.UploadDatasetRequest]:
            yield pb.UploadDatasetRequest(options=asked, data=content[:10], request_id=request_id)
            for start in range(10, len(content), PIECE):
                yield pb.UploadDatasetRequest(data=content[start : start + PIECE])

        return (await self.stub.UploadDataset(requests(), metadata=self.metadata)).dataset

    async def get(self, dataset_id: str) -> pb.GetDatasetResponse:
        return await self.stub.GetDataset(pb.GetDatasetRequest(dataset_id=dataset_id), metadata=self.metadata)

    async def rows(self, dataset_id: str, **page: object) -> pb.ListDatasetRowsResponse:
        request = pb.ListDatasetRowsRequest(dataset_id=dataset_id, **page)  # type: ignore[arg-type]
        return await self.stub.ListDatasetRows(request, metadata=self.metadata)

    async def list(self, **filters: object) -> pb.ListDatasetsResponse:
        request = pb.ListDatasetsRequest(**filters)  # type: ignore[arg-type]
        return await self.stub.ListDatasets(request, metadata=self.metadata)

    async def delete(self, dataset_id: str) -> pb.DeleteDatasetResponse:
        return await self.stub.DeleteDataset(pb.DeleteDatasetRequest(dataset_id=dataset_id), metadata=self.metadata)


@asynccontextmanager
async def callers(nats: NatsServer, folder: Path, reads: str = visibility.OPEN) -> AsyncIterator[dict[str, Caller]]:
    async with serving(nats, folder, reads) as (_, address), rpc.channel(address) as channel:
        yield {user: Caller(channel, user) for user in ("ann", "bob", "root", "machine")}


async def code_of(call: object) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    return refused.value.code()


async def test_a_dataset_is_uploaded_shown_and_deleted(nats: NatsServer, tmp_path: Path) -> None:
    async with callers(nats, tmp_path) as users:
        ann = users["ann"]
        dataset = await ann.upload(lines(range(2500)), name="C:\\data\\../my rows.jsonl")
        assert (dataset.name, dataset.owner) == ("my rows.jsonl", "ann")
        got = await users["bob"].get(dataset.dataset_id)
        assert got.dataset == dataset
        assert got.live_jobs == 0
        assert list((await ann.list()).datasets) == [dataset]
        seen: list[str] = []
        token = ""
        while True:
            page = await ann.rows(dataset.dataset_id, page_size=400, page_token=token)
            assert page.first == len(seen)
            seen += [row.messages[0].content for row in page.rows]
            token = page.next_page_token
            if not token:
                break
        assert seen == [f"Question {n}?" for n in range(2500)]
        await ann.delete(dataset.dataset_id)
        assert await code_of(ann.get(dataset.dataset_id)) == grpc.StatusCode.NOT_FOUND
        assert await code_of(ann.rows(dataset.dataset_id)) == grpc.StatusCode.NOT_FOUND
        assert await code_of(ann.delete(dataset.dataset_id)) == grpc.StatusCode.NOT_FOUND
        assert not (await ann.list()).datasets


async def test_finished_jobs_are_counted_before_a_deletion_and_by_it(nats: NatsServer, tmp_path: Path) -> None:
    async with serving(nats, tmp_path, visibility.OPEN) as (keeper, address), rpc.channel(address) as channel:
        ann = Caller(channel, "ann")
        dataset_id = (await ann.upload(lines(range(3)))).dataset_id
        assert list((await ann.list()).finished_jobs) == [0]
        events = []
        # The last one has ended, which is not heard here yet: the scheduler's records have no live job.
        for number, state in enumerate(("COMPLETED", "FAILED", "CANCELLED", "RUNNING")):
            made = job(f"job-{number}", state=job_pb2.Job.State.Value(f"STATE_{state}"))
            made.spec.dataset.dataset_id = dataset_id
            events.append(event(f"{number:04d}", made))
        await keeper.database.write(lambda connection: writes.store_events(connection, events))
        got = await ann.get(dataset_id)
        assert (got.live_jobs, got.finished_jobs) == (1, 3)
        assert list((await ann.list()).finished_jobs) == [3]
        assert (await ann.delete(dataset_id)).finished_jobs == 4


async def test_long_rows_are_shown_cut_and_their_json_stays_json(nats: NatsServer, tmp_path: Path) -> None:
    row = {
        "prompt": "é" * 5000,
        "reference": ["ü" * 3000],
        "metadata": {"name": "Ada", "story": "once " * 2000, **{f"field{n}": "x" * 150 for n in range(50)}},
    }
    async with callers(nats, tmp_path) as users:
        dataset = await users["ann"].upload((json.dumps(row) + "\n").encode() * 1)
        (shown,) = (await users["ann"].rows(dataset.dataset_id)).rows
    for text in (shown.messages[0].content, shown.reference, shown.metadata):
        assert len(text.encode()) <= 2200
    assert isinstance(json.loads(shown.reference), str)
    metadata = json.loads(shown.metadata)
    assert metadata["name"] == "Ada"
    assert metadata["story"].startswith("once ")


async def test_rows_that_are_asked_for_whole_are_whole(nats: NatsServer, tmp_path: Path) -> None:
    rows = [{"prompt": "é" * 700_000, "reference": "ü" * 3000, "metadata": {"story": "once " * 2000}} for _ in range(5)]
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    async with callers(nats, tmp_path) as users:
        dataset = await users["ann"].upload(content)
        page = await users["ann"].rows(dataset.dataset_id, whole=True, page_size=500)
        found = list(page.rows)
        assert 0 < len(found) < 5  # as many as a message takes
        while page.next_page_token:
            page = await users["ann"].rows(
                dataset.dataset_id, whole=True, page_size=500, page_token=page.next_page_token
            )
            found += page.rows
    assert [row.custom_id for row in found] == [f"row-{number}" for number in range(1, 6)]
    for row in found:
        assert (row.messages[0].content, json.loads(row.reference)) == (rows[0]["prompt"], rows[0]["reference"])
        assert json.loads(row.metadata) == rows[0]["metadata"]


async def test_bad_lines_come_as_details_of_the_error(nats: NatsServer, tmp_path: Path) -> None:
    content = b'{"prompt": "fine"}\n[]\n{"prompt": 7}\n'
    async with callers(nats, tmp_path) as users:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await users["ann"].upload(content)
    status = rpc_status.from_call(refused.value)
    bad = error_details_pb2.BadRequest()
    assert any(detail.Unpack(bad) for detail in status.details)
    assert [violation.field for violation in bad.field_violations] == ["line 2", "line 3"]
    told = rpc.from_rpc_error(refused.value)
    assert isinstance(told, BadLinesError)
    assert told.total == 2
    assert [(one.count, one.lines) for one in told.reasons] == [(1, [2]), (1, [3])]


@pytest.mark.parametrize("name", ["", "  ", "a/", "x" * 201, "a\u202egpj.jsonl", "a\nb.jsonl", "a\0b"])
async def test_hostile_names_are_refused(nats: NatsServer, tmp_path: Path, name: str) -> None:
    async with callers(nats, tmp_path) as users:
        assert await code_of(users["ann"].upload(lines(range(1)), name=name)) == grpc.StatusCode.INVALID_ARGUMENT


async def test_an_upload_of_nothing_is_refused(nats: NatsServer, tmp_path: Path) -> None:
    async with callers(nats, tmp_path) as users:
        stub, metadata = users["ann"].stub, users["ann"].metadata
        assert await code_of(stub.UploadDataset(iter(()), metadata=metadata)) == grpc.StatusCode.INVALID_ARGUMENT
        assert await code_of(users["ann"].upload(b"")) == grpc.StatusCode.INVALID_ARGUMENT


async def test_a_low_disk_refuses_uploads_and_still_deletes(nats: NatsServer, tmp_path: Path) -> None:
    async with serving(nats, tmp_path, visibility.OPEN) as (keeper, address), rpc.channel(address) as channel:
        ann, room = Caller(channel, "ann"), keeper.datasets.room
        kept = await ann.upload(lines(range(3)))
        room.level, room.sentence = bus.Level.LOW, "The disk is almost full."
        with pytest.raises(grpc.aio.AioRpcError, match="The disk is almost full") as refused:
            await ann.upload(lines(range(4)))
        assert isinstance(rpc.from_rpc_error(refused.value), NoRoomError)
        assert (await ann.list()).total_size == 1
        await ann.delete(kept.dataset_id)
        room.level = bus.Level.ENOUGH
        assert (await ann.upload(lines(range(4)))).rows == 4


async def test_a_repeated_upload_with_a_request_id_is_one_dataset(nats: NatsServer, tmp_path: Path) -> None:
    async with callers(nats, tmp_path) as users:
        ann, bob = users["ann"], users["bob"]
        first = await ann.upload(lines(range(5)), "nightly")
        assert await ann.upload(lines(range(5)), "nightly") == first
        assert (await bob.upload(lines(range(5)), "nightly")).owner == "bob"
        assert await code_of(ann.upload(lines(range(6)), "nightly")) == grpc.StatusCode.FAILED_PRECONDITION
        assert await code_of(ann.upload(lines(range(5)), "a b")) == grpc.StatusCode.INVALID_ARGUMENT
        assert (await ann.list(owner="ann")).total_size == 1


async def test_others_may_not_delete_and_an_admin_may(nats: NatsServer, tmp_path: Path) -> None:
    async with callers(nats, tmp_path) as users:
        dataset = await users["ann"].upload(lines(range(5)), owner="bob")
        assert dataset.owner == "ann", "only services say whose it is"
        assert await code_of(users["bob"].delete(dataset.dataset_id)) == grpc.StatusCode.PERMISSION_DENIED
        await users["root"].delete(dataset.dataset_id)
        assert (await users["machine"].upload(lines(range(5)), owner="bob")).owner == "bob"


async def test_closed_reads_show_a_user_only_the_users_own(nats: NatsServer, tmp_path: Path) -> None:
    async with callers(nats, tmp_path, visibility.OWN) as users:
        dataset = await users["ann"].upload(lines(range(5)))
        for hidden in (users["bob"].get, users["bob"].rows, users["bob"].delete):
            assert await code_of(hidden(dataset.dataset_id)) == grpc.StatusCode.NOT_FOUND
        assert (await users["bob"].list()).total_size == 0
        assert (await users["ann"].list()).total_size == 1
        assert (await users["root"].list()).total_size == 1


async def test_a_split_of_the_hub_becomes_a_dataset_with_its_source(nats: NatsServer, tmp_path: Path) -> None:
    source = suite_pb2.DataSource(dataset="someone/facts", config="default", split="test", revision="abc123")

    opened: list[str] = []

    async def open_split(request: pb.CreateHubDatasetRequest) -> bus.Split:
        opened.append(request.source.dataset)

        async def rows() -> AsyncIterator[bytes]:
            for number in range(request.limit):
                yield json.dumps({"question": f"Is {number} even?", "answer": number % 2 == 0}).encode() + b"\n"

        return bus.Split(source, rows())

    request = pb.CreateHubDatasetRequest(
        options=dataset_pb2.DatasetOptions(template="{{question}}"),
        source=suite_pb2.DataSource(dataset="someone/facts", split="test"),
        limit=3,
    )
    request.options.scoring.reference_field = "answer"
    async with serving(nats, tmp_path, visibility.OPEN) as (keeper, address), rpc.channel(address) as channel:
        ann = Caller(channel, "ann")
        unavailable = ann.stub.CreateHubDataset(request, metadata=ann.metadata)
        assert await code_of(unavailable) == grpc.StatusCode.UNAVAILABLE
        splits = asyncio.create_task(bus.serve_splits(keeper.connection, open_split))
        await until(lambda: nats.hears(contract.SPLITS))
        dataset = (await ann.stub.CreateHubDataset(request, metadata=ann.metadata)).dataset
        rows = await keeper.rows(dataset.dataset_id)
        request.request_id = "once"
        first, again = [(await ann.stub.CreateHubDataset(request, metadata=ann.metadata)).dataset for _ in range(2)]
        assert first == again
        assert first.dataset_id != dataset.dataset_id
        assert len(opened) == 2, "what is known is not read again"
        request.limit = 4
        other = ann.stub.CreateHubDataset(request, metadata=ann.metadata)
        assert await code_of(other) == grpc.StatusCode.FAILED_PRECONDITION
        splits.cancel()
    assert (dataset.name, dataset.format) == ("someone/facts/default/test", dataset_pb2.Dataset.FORMAT_HUB)
    assert dataset.source == source
    assert [(row.messages[0].content, row.reference) for row in rows] == [
        (f"Is {n} even?", "true" if n % 2 == 0 else "false") for n in range(3)
    ]


@pytest.mark.stack
async def test_the_service_keeps_datasets_over_a_kill(nats: NatsServer, tmp_path: Path) -> None:
    service = Service(tmp_path / "state", nats)
    service.start()
    try:
        async with rpc.channel(service.address) as channel:
            await asyncio.wait_for(channel.channel_ready(), 30)
            dataset = await Caller(channel, "local").upload(lines(range(1500)))
        service.end(signal.SIGKILL)
        service.start()
        async with rpc.channel(service.address) as channel:
            await asyncio.wait_for(channel.channel_ready(), 30)
            caller = Caller(channel, "local")
            assert list((await caller.list()).datasets) == [dataset]
            assert len((await caller.rows(dataset.dataset_id, page_size=500)).rows) == 500
    finally:
        service.end()
