"""Holds a resident engine until it is killed. Reads one line of JSON: the state directory and the engine's command.

Prints "ready" once the model "a" is in memory. What an evaluator does with an engine endpoint, without the rest of one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.engine.ownership import Ownership
from services.evaluator.engine.provider import EngineProvider
from services.evaluator.make_provider import provider


async def main(state_dir: Path, command: list[str]) -> None:
    table = {"command": command, "models": ["/srv/a"], "device": "cpu", "directory": str(Path.cwd())}
    options = EngineOptions.read(table, {"TOUCHSTONE_STATE_DIR": str(state_dir)})
    endpoint = Endpoint("gpu0", "engine", engine=options)
    if not Ownership().claim([endpoint]):
        sys.exit("owned by another")
    await EngineProvider(endpoint, provider).ready("a")
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    folder, engine_command = json.loads(sys.stdin.readline())
    asyncio.run(main(Path(folder), engine_command))
