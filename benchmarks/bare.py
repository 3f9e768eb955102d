"""The bare loop: the same requests over aiohttp with as many at once, and nothing else.

`python -m benchmarks.bare --url … --prompts FILE --concurrency 64` prints the seconds from first call to last answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import aiohttp

from benchmarks.endpoint import MODEL

_ROOT = Path(__file__).resolve().parents[1]


def bare_loop(url: str, prompts: Path, concurrency: int) -> float:
    """Seconds of the loop, run in a process of its own. `prompts` is a JSON list."""
    command = [sys.executable, "-m", "benchmarks.bare", "--url", url, "--prompts", str(prompts)]
    done = subprocess.run(
        [*command, "--concurrency", str(concurrency)], cwd=_ROOT, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


async def _run(url: str, prompts: list[str], concurrency: int) -> float:
    left = iter(prompts)

    async def slot(session: aiohttp.ClientSession) -> None:
        for prompt in left:
            body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}], "stream": False}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                answer = await response.json()
            assert answer["choices"][0]["message"]["content"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=False) as session:
        started = time.perf_counter()
        await asyncio.gather(*(slot(session) for _ in range(concurrency)))
        return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    options = parser.parse_args()
    print(asyncio.run(_run(options.url, json.loads(options.prompts.read_text()), options.concurrency)))
