"""`touchstone completion`: what a shell needs to complete this command."""

from __future__ import annotations

import argparse
from typing import Any

from touchstone_client.command.arguments.declaring import leaf
from touchstone_client.command.exits import DONE

SHELLS = ("bash", "zsh")


def add(commands: Any) -> None:
    parser = leaf(commands, "completion", "print a shell's completion of this command", _completion)
    parser.add_argument("shell", choices=SHELLS)


def _completion(options: argparse.Namespace) -> int:
    try:
        # Needed only here, so imported only here.
        import shtab
    except ModuleNotFoundError:
        options.parser.error("this needs the package shtab. Install it: pip install shtab")

    print(shtab.complete(options.command, shell=options.shell))
    return DONE
