"""The `touchstone` command. Each verb is a module with `add(commands)`, which also says what runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from touchstone_client.command import data, rerun, rescore, run
from touchstone_client.command.exits import FAILED, INTERRUPTED, REFUSED, UNREACHABLE
from touchstone_client.errors import RefusedError, UnreachableError

_ENVIRONMENT = """\
environment:
  TOUCHSTONE_SCHEDULER  the scheduler's host:port (127.0.0.1:50051)
  TOUCHSTONE_RESULTS    the results service's host:port (127.0.0.1:50052)
  TOUCHSTONE_TOKEN      your token, where the installation asks for one

exit codes:
  0 done   1 the job failed, was cancelled or is incomplete   2 refused   3 a service does not answer
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="touchstone",
        description="Evaluates models with a Touchstone installation.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(metavar="command", required=True)
    for verb in (run, rescore, rerun, data):
        verb.add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process's exit code. Errors go to stderr in one line."""
    options = parser().parse_args(arguments)
    try:
        code: int = options.do(options)
    except RefusedError as error:
        return _said(error.message, REFUSED)
    except UnreachableError as error:
        return _said(error.message, UNREACHABLE)
    except KeyboardInterrupt:
        return _said("Stopped watching; the job goes on.", INTERRUPTED)
    return code


def _said(sentence: str, code: int) -> int:
    print(f"touchstone: {sentence}", file=sys.stderr)
    return code


__all__ = ["FAILED", "main", "parser"]
