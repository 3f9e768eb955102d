"""`touchstone data pull`: a local mirror of a suite's data, for sites without the Hub."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from services.errors import TouchstoneError
from touchstone_client.command.arguments.declaring import group, leaf
from touchstone_client.command.exits import DONE, REFUSED

_DIR = "TOUCHSTONE_DATA_DIR"


def add(commands: Any) -> None:
    verbs = group(commands, "data", "data sets of suites")
    words = "fetch a suite's data sets into a mirror directory"
    pull = leaf(verbs, "pull", words, _pull, f"Runs where the evaluator is installed: {words}.")
    pull.add_argument("suite", help="a suite, e.g. glue")
    pull.add_argument("--dir", type=Path, help=f"the mirror directory ({_DIR})")


def _pull(options: argparse.Namespace) -> int:
    directory = options.dir or os.environ.get(_DIR)
    if not directory:
        print(f"touchstone: name the mirror directory with --dir DIR, or set {_DIR}.", file=sys.stderr)
        return REFUSED
    # Slow to import, and needed only here.
    from services.evaluator.pull import pull

    try:
        pull(options.suite, Path(directory), print)
    except TouchstoneError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        return REFUSED
    return DONE
