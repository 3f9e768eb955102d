"""`touchstone backup`, `restore`, `check` and `repair`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.errors import TouchstoneError, UnavailableError
from touchstone_client.command.arguments.declaring import leaf
from touchstone_client.command.exits import DONE, FAILED, REFUSED, UNREACHABLE

_STATE = "TOUCHSTONE_STATE_DIR"


def add(commands: Any) -> None:
    words = "back up the running installation (for operators, on the machine of the services)"
    _state_dir(leaf(commands, "backup", words, _backup))
    words = "restore a backup into a stopped installation (for operators)"
    parser = leaf(commands, "restore", words, _restore)
    parser.add_argument("backup", type=Path, help="the backup's folder, as `touchstone backup` printed it")
    _state_dir(parser)
    words = "check everything that an installation stores (for operators)"
    _state_dir(leaf(commands, "check", words, _check))
    words = "rebuild a damaged database from what can be read (for operators)"
    _state_dir(leaf(commands, "repair", words, _repair))


def _state_dir(parser: argparse.ArgumentParser) -> None:
    words = f"the installation's state directory ({_STATE}, else var)"
    parser.add_argument("--state-dir", type=Path, default=Path(os.environ.get(_STATE) or "var"), help=words)


def _backup(options: argparse.Namespace) -> int:
    def ask() -> None:
        from services.results.backups.making import backup_of

        os.environ[_STATE] = str(options.state_dir)
        print(asyncio.run(backup_of()))

    return _done(ask)


def _restore(options: argparse.Namespace) -> int:
    def put() -> None:
        from deploy.local.recovery.restore import restore

        restore(options.backup, options.state_dir, print)

    return _done(put)


def _check(options: argparse.Namespace) -> int:
    faults = 0

    def look() -> None:
        from deploy.local.recovery.check import check

        nonlocal faults
        os.environ[_STATE] = str(options.state_dir)
        faults = check(options.state_dir, print)
        if not faults:
            print("Everything can be read and is consistent.")

    return _done(look) or (FAILED if faults else DONE)


def _repair(options: argparse.Namespace) -> int:
    def make() -> None:
        from deploy.local.recovery.repair import repair

        repair(options.state_dir, print)

    return _done(make)


def _done(work: Callable[[], None]) -> int:
    from deploy.local.settings import LaunchError

    # For all files written into the state directory, as in the launcher.
    before = os.umask(0o077)
    try:
        work()
    except UnavailableError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        return UNREACHABLE
    except (TouchstoneError, LaunchError) as error:
        print(f"touchstone: {error}", file=sys.stderr)
        return REFUSED
    finally:
        os.umask(before)
    return DONE
