"""`python -m tests.blocking_client`: makes the blocking client's methods from the asynchronous ones.

A method is written once, in `touchstone_client/asynchronous`. Channels and calls differ in kind and are written twice,
in the two modules `calls.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from unasync import Rule, unasync_files

CLIENT = Path(__file__).parents[1] / "client" / "touchstone_client"
_BUILD = CLIENT.parents[1] / "build"
MODULES = ("datasets", "installation", "jobs", "results")
_RULE = Rule("/asynchronous/", "/blocking/", {"asynchronous": "blocking", "asyncio": "time"})
_TIDY = "I001,F401,UP028,C416,C419"


def make(folder: Path) -> None:
    """Writes the modules of `touchstone_client/blocking` into `folder`."""
    # Inside the tree for ruff's settings, and in none of the folders whose modules are listed.
    _BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_BUILD) as work:
        source, made = Path(work, "asynchronous"), Path(work, "blocking")
        shutil.copytree(CLIENT / "asynchronous", source)
        unasync_files([str(source / f"{name}.py") for name in MODULES], [_RULE])
        for name in MODULES:
            path = made / f"{name}.py"
            first, rest = path.read_text("utf-8").split("\n", 1)
            path.write_text(
                f"{first}\n\n# Made from asynchronous/{name}.py. Change that file, then run: make blocking\n{rest}",
                "utf-8",
            )
        ruff = Path(sys.executable).with_name("ruff")
        for command in (["check", "--quiet", "--fix", "--unsafe-fixes", "--select", _TIDY], ["format", "--quiet"]):
            subprocess.run([str(ruff), *command, str(made)], check=True)
        for name in MODULES:
            shutil.copyfile(made / f"{name}.py", folder / f"{name}.py")


if __name__ == "__main__":
    make(CLIENT / "blocking")
