"""`touchstone backup`, `restore`, `check` and `repair`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.errors import InvalidRequestError, TouchstoneError, UnavailableError
from touchstone_client.command.arguments.declaring import leaf
from touchstone_client.command.exits import DONE, FAILED, REFUSED, UNREACHABLE

_STATE = "TOUCHSTONE_STATE_DIR"


def add(commands: Any) -> None:
    words = "back up the running installation (for operators, on the machine of the services)"
    _state_dir(leaf(commands, "backup", words, _backup))
    words = "restore a backup, archived jobs, or both into a stopped installation (for operators)"
    parser = leaf(commands, "restore", words, _restore)
    parser.add_argument("backup", nargs="?", help="the backup's place, as `touchstone backup` printed it")
    _archive(parser)
    words = "only this job of the archive; repeat it for more"
    parser.add_argument("--job", action="append", default=[], metavar="ID", help=words)
    _state_dir(parser)
    words = "check everything that an installation stores (for operators)"
    parser = leaf(commands, "check", words, _check)
    _archive(parser)
    _state_dir(parser)
    words = "rebuild a damaged database from what can be read (for operators)"
    parser = leaf(commands, "repair", words, _repair)
    _archive(parser)
    _state_dir(parser)


def _archive(parser: argparse.ArgumentParser) -> None:
    words = "an archive of finished jobs: a folder, or s3://bucket/prefix"
    parser.add_argument("--archive", metavar="PLACE", default="", help=words)


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
        from deploy.local.recovery.archived import opened, restore_archive
        from deploy.local.recovery.restore import restore

        if options.backup is None and not options.archive:
            raise InvalidRequestError("Name a backup, or an archive with --archive.")
        if options.backup is not None and options.job:
            raise InvalidRequestError("--job chooses among an archive's jobs. Restore the backup without it first.")
        if options.backup is None:
            restore_archive(options.archive, options.state_dir, options.job, print)
        else:
            restore(options.backup, options.state_dir, print, opened(options.archive))

    return _done(put)


def _check(options: argparse.Namespace) -> int:
    faults = 0

    def look() -> None:
        from deploy.local.recovery.archived import opened
        from deploy.local.recovery.check import check

        nonlocal faults
        os.environ[_STATE] = str(options.state_dir)
        faults = check(options.state_dir, print, opened(options.archive))
        if not faults:
            print("Everything can be read and is consistent.")

    return _done(look) or (FAILED if faults else DONE)


def _repair(options: argparse.Namespace) -> int:
    def make() -> None:
        from deploy.local.recovery.archived import opened
        from deploy.local.recovery.repair import repair

        repair(options.state_dir, print, opened(options.archive))

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
