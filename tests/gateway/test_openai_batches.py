"""Batches as OpenAI's clients follow them."""

from __future__ import annotations

import httpx
import pytest

from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2

ANCHOR, SECONDS = "expires_after[anchor]", "expires_after[seconds]"
LINES = b"".join(
    b'{"custom_id": "c-%d", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": '
    b'[{"role": "user", "content": "p"}]}}\n' % number
    for number in range(3)
)


async def test_a_batch_file_may_say_what_becomes_of_the_assistants_last_message(gateway: Running) -> None:
    for choice, status in (("prefill", 200), ("keep", 400)):
        form = {"purpose": "batch", "last_assistant": choice}
        answer = await gateway.client.post("/v1/files", files={"file": ("b.jsonl", LINES)}, data=form)
        assert answer.status_code == status, answer.text
    assert [one.last_assistant for one in gateway.world.options] == [job_pb2.LAST_ASSISTANT_PREFILL]
    assert "reference, prefill, refuse" in answer.text


def _form(*parts: tuple[str, bytes]) -> tuple[bytes, dict[str, str]]:
    """A multipart body with its parts in this order, and its headers. httpx always puts the file last."""
    body = b""
    for name, data in parts:
        named = '; filename="b.jsonl"' if name == "file" else ""
        body += f'--xyz\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + data + b"\r\n"
    return body + b"--xyz--\r\n", {"Content-Type": "multipart/form-data; boundary=xyz"}


async def test_the_purpose_may_come_after_the_file(gateway: Running) -> None:
    body, headers = _form(("file", LINES), ("purpose", b"batch"))
    answer = await gateway.client.post("/v1/files", content=body, headers=headers)
    assert (answer.status_code, answer.json()["purpose"]) == (200, "batch")


@pytest.mark.parametrize(
    ("parts", "param"),
    [
        ([("file", LINES), ("purpose", b"fine-tune")], "purpose"),
        ([("file", LINES)], "purpose"),
        ([("purpose", b"fine-tune"), ("file", LINES)], "purpose"),
        ([("file", LINES), ("purpose", b"batch"), (ANCHOR, b"created_at")], SECONDS),
        ([("file", LINES), ("purpose", b"batch"), (SECONDS, b"3600")], ANCHOR),
        ([("file", LINES), ("purpose", b"batch"), (ANCHOR, b"last_active_at"), (SECONDS, b"3600")], ANCHOR),
        ([("file", LINES), ("purpose", b"batch"), (ANCHOR, b"created_at"), (SECONDS, b"3599")], SECONDS),
        ([(ANCHOR, b"created_at"), (SECONDS, b"2592001"), ("purpose", b"batch"), ("file", LINES)], SECONDS),
        ([(ANCHOR, b"created_at"), (SECONDS, b"9" * 5000), ("purpose", b"batch"), ("file", LINES)], SECONDS),
        (
            [(ANCHOR, b"created_at"), (SECONDS, b"0000003600" + b"9" * 5000), ("purpose", b"batch"), ("file", LINES)],
            SECONDS,
        ),
        ([(ANCHOR, b"created_at"), (SECONDS, "٣٦٠٠".encode()), ("purpose", b"batch"), ("file", LINES)], SECONDS),
    ],
)
async def test_what_a_file_is_not_kept_for_is_refused_and_nothing_is_stored(
    gateway: Running, parts: list[tuple[str, bytes]], param: str
) -> None:
    body, headers = _form(*parts)
    answer = await gateway.client.post("/v1/files", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    assert (await gateway.client.get("/v1/files")).json()["data"] == []


@pytest.mark.parametrize("first", ["file", "expires_after"])
async def test_a_file_expires_when_its_upload_says_so_before_or_after_it(gateway: Running, first: str) -> None:
    file, expiry = ("file", LINES), ((ANCHOR, b"created_at"), (SECONDS, b"2592000"))
    parts = (file, *expiry) if first == "file" else (*expiry, file)
    body, headers = _form(("purpose", b"batch"), *parts)
    answer = await gateway.client.post("/v1/files", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert made["expires_at"] == made["created_at"] + 2_592_000
    assert (await gateway.client.get(f"/v1/files/{made['id']}")).json() == made


async def test_a_batch_tells_its_tokens_once_it_is_over(gateway: Running) -> None:
    file = {"file": ("b.jsonl", LINES)}
    made = await gateway.client.post("/v1/files", files=file, data={"purpose": "batch"})
    asked = {"input_file_id": made.json()["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = await gateway.client.post("/v1/batches", json=asked | {"model": "qwen2.5:7b@ollama"})
    batch = answer.json()
    assert (answer.status_code, batch["usage"]) == (200, None)
    (job,) = gateway.world.jobs.values()
    gateway.world.start(job.job_id)
    assert (await gateway.client.get(f"/v1/batches/{batch['id']}")).json()["usage"] is None
    gateway.world.finish(job.job_id)
    usage = (await gateway.client.get(f"/v1/batches/{batch['id']}")).json()["usage"]
    assert usage == {
        "input_tokens": 180,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 192,
    }
    assert [one["usage"] for one in (await gateway.client.get("/v1/batches")).json()["data"]] == [usage]


async def _started(gateway: Running, **body: object) -> httpx.Response:
    made = await gateway.client.post("/v1/files", files={"file": ("b.jsonl", LINES)}, data={"purpose": "batch"})
    asked = {"input_file_id": made.json()["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return await gateway.client.post("/v1/batches", json=asked | {"model": "qwen2.5:7b@ollama"} | body)


async def test_a_batchs_files_expire_when_it_says_so(gateway: Running) -> None:
    asked = {"metadata": {"team": "a"}, "output_expires_after": {"anchor": "created_at", "seconds": 3600}}
    batch = (await _started(gateway, **asked)).json()
    assert batch["metadata"] == {"team": "a"}
    (job,) = gateway.world.jobs.values()
    gateway.world.start(job.job_id)
    gateway.world.finish(job.job_id)
    ended = (await gateway.client.get(f"/v1/batches/{batch['id']}")).json()
    file_id = ended["output_file_id"]
    file = (await gateway.client.get(f"/v1/files/{file_id}")).json()
    assert file["expires_at"] == file["created_at"] + 3600
    assert file["created_at"] == ended["completed_at"]

    job.finished_at.seconds -= 3601
    for path in (f"/v1/files/{file_id}", f"/v1/files/{file_id}/content"):
        gone = await gateway.client.get(path)
        assert (gone.status_code, gone.json()["error"]["message"]) == (404, f"No such File object: {file_id}")
    assert (await gateway.client.get("/v1/files", params={"purpose": "batch_output"})).json()["data"] == []
    assert (await gateway.client.get(f"/v1/batches/{batch['id']}")).json()["output_file_id"] == file_id


async def test_a_batchs_files_stay_by_default(gateway: Running) -> None:
    await _started(gateway, output_expires_after=None)
    (job,) = gateway.world.jobs.values()
    gateway.world.start(job.job_id)
    gateway.world.finish(job.job_id)
    job.finished_at.seconds = 1
    (file,) = (await gateway.client.get("/v1/files", params={"purpose": "batch_output"})).json()["data"]
    assert file["expires_at"] is None


@pytest.mark.parametrize(
    ("expiry", "param"),
    [
        ({"anchor": "created_at", "seconds": 3599}, "output_expires_after.seconds"),
        ({"anchor": "created_at", "seconds": 2_592_001}, "output_expires_after.seconds"),
        ({"anchor": "created_at", "seconds": "3600"}, "output_expires_after.seconds"),
        ({"anchor": "created_at"}, "output_expires_after.seconds"),
        ({"anchor": "last_active_at", "seconds": 3600}, "output_expires_after.anchor"),
        ({"seconds": 3600}, "output_expires_after.anchor"),
        (3600, "output_expires_after"),
    ],
)
async def test_a_wrong_expiry_is_refused_with_its_field(gateway: Running, expiry: object, param: str) -> None:
    answer = await _started(gateway, output_expires_after=expiry)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    assert gateway.world.jobs == {}
