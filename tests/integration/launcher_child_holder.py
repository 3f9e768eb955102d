"""Holds one supervised child until it is killed: `python launcher_child_holder.py <state dir>`.

The child starts a grandchild in its own group. Prints both pids.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from deploy.local.state import StateDir
from deploy.local.supervisor import Process, Supervisor

CHILD = """
import subprocess, sys, time
grandchild = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
print(grandchild.pid, file=open(sys.argv[1] + ".new", "w"), flush=True)
import os; os.replace(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


async def main(state_dir: Path) -> None:
    state = StateDir(state_dir)
    supervisor = Supervisor(state, print, state_dir)
    grandchild = state_dir / "grandchild"

    async def ready() -> bool:
        return grandchild.exists()

    environment = dict(os.environ) | {"TOUCHSTONE_STATE_DIR": str(state_dir)}
    await supervisor.start([Process("child", (sys.executable, "-S", "-c", CHILD, str(grandchild)), environment, ready)])
    print(supervisor.pid("child"), grandchild.read_text().strip(), flush=True)
    await supervisor.watch()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
