"""Item results at a steady rate, as evaluators send them: what is measured beside it is measured while results come in.

`python -m benchmarks.publisher --nats URL --job ID --rate N` publishes until SIGTERM, then prints how many it sent.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services import bus
from touchstone.v1 import item_result_pb2

PACK = 64
_ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def publishing(nats_url: str, job_id: str, rate: int) -> Iterator[list[int]]:
    """Publishes so many items a second while the block runs; then the list holds how many they were."""
    command = [sys.executable, "-m", "benchmarks.publisher", "--nats", nats_url, "--job", job_id, "--rate", str(rate)]
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    sent: list[int] = []
    try:
        yield sent
    finally:
        process.terminate()
        sent.append(int(process.communicate(timeout=30)[0] or 0))


async def _publish(url: str, job_id: str, rate: int) -> int:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    connection = await bus.connect(url, "benchmark")
    started, sent = time.monotonic(), 0
    try:
        while not over.is_set():
            items = [_answer(number) for number in range(sent, sent + PACK)]
            unit = sent // PACK
            batch = item_result_pb2.ItemResultBatch(job_id=job_id, attempt=1, unit=unit, task="sst2", items=items)
            await connection.publish_items(batch, delivery=1, done=True)
            sent += PACK
            await asyncio.sleep(max(0.0, started + sent / rate - time.monotonic()))
    finally:
        await connection.close()
    return sent


def _answer(number: int) -> item_result_pb2.ItemResult:
    return item_result_pb2.ItemResult(
        item=number,
        position=number,
        item_hash=f"{number:064x}",
        prompt_hash="0" * 64,
        prompt=f"user: question {number} " + "which of these is right " * 12,
        response="Answer: A",
        outcome=item_result_pb2.OUTCOME_ANSWERED,
        prediction="A",
        reference="A",
        statistics={"correct": 1},
        extraction="last match of “answer: …”",
        latency_ms=200,
        input_tokens=120,
        output_tokens=3,
        finish_reason="stop",
        calls=1,
        scorer_version="1",
        served_model="stub",
        identity=f"{number:032x}",
        parameters='{"max_tokens":32,"temperature":0}',
        cost_usd=0.0001,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nats", required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--rate", type=int, required=True)
    options = parser.parse_args()
    print(asyncio.run(_publish(options.nats, options.job, options.rate)))
