"""`touchstone suite check`: what is wrong with a suite or a package of plug-ins, for its author."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from services.errors import TouchstoneError
from touchstone_client.command.arguments.declaring import group, leaf, of_files
from touchstone_client.command.exits import DONE, FAILED, REFUSED

_DIR = "TOUCHSTONE_DATA_DIR"


def add(commands: Any) -> None:
    verbs = group(commands, "suite", "suites and plug-ins of your own")
    words = "say what is wrong with a suite or a plug-in"
    check = leaf(verbs, "check", words, _check, f"Runs where Touchstone is installed: {words}.")
    target = "a suite's file, a package's folder with its pyproject.toml, or an installed package"
    of_files(check.add_argument("target", metavar="FILE", help=target))
    check.add_argument("--dir", type=Path, help=f"the mirror directory with the data ({_DIR}; default: the Hub)")


def _check(options: argparse.Namespace) -> int:
    directory = options.dir or os.environ.get(_DIR)
    # Slow to import, and needed by nothing else.
    from services.evaluator.plugins.check import check_apart

    try:
        fine = check_apart(options.target, Path(directory) if directory else None, print)
    except TouchstoneError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        return REFUSED
    print("Nothing is wrong." if fine else "Correct what is listed above.")
    return DONE if fine else FAILED
