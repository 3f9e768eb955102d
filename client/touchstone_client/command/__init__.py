"""The `touchstone` command. Each verb is a module with `add(commands)`, which also sets the function that runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from services import __version__
from touchstone_client.command import bench, gate
from touchstone_client.command.arguments import completion
from touchstone_client.command.arguments.declaring import Parser, of_system
from touchstone_client.command.arguments.flags import refusal
from touchstone_client.command.automating import digest, schedules, watch, webhooks
from touchstone_client.command.exits import DONE, INTERRUPTED, PIPE_CLOSED, REFUSED, UNREACHABLE
from touchstone_client.command.reading import (
    compare,
    configurations,
    export,
    installation,
    items,
    jobs,
    judges,
    leaderboard,
    logs,
    receipt,
    results,
    side_by_side,
)
from touchstone_client.command.running import (
    annotate,
    control,
    dataset,
    decide,
    estimate,
    import_logs,
    judge,
    noise,
    recorded_runs,
    rerun,
    rescore,
    run,
)
from touchstone_client.errors import RefusedError, ServiceError, UnreachableError

_EPILOG = """\
environment:
  TOUCHSTONE_SCHEDULER  the scheduler's host:port, or several separated by commas (127.0.0.1:8051)
  TOUCHSTONE_RESULTS    the results service's host:port (127.0.0.1:8052)
  TOUCHSTONE_TOKEN      your token, where the installation asks for one
  TOUCHSTONE_TLS_CA     PEM file of the authority to trust, for TLS; system for public ones
  TOUCHSTONE_TLS_CLIENT_CERT, TOUCHSTONE_TLS_CLIENT_KEY
                        PEM files, where the installation asks for a client certificate
  NO_COLOR              any text: no colours

exit codes:
  0 done   1 the job failed, was cancelled or is incomplete   2 refused   3 a service does not answer or failed
  130 interrupted. `touchstone gate --help` lists those of the gate.
"""
_VERBS = (
    run, estimate, decide, noise, results, jobs, items, annotate, side_by_side, compare, leaderboard, receipt, control,
    rescore, rerun, judge, judges, bench, dataset, import_logs, recorded_runs, export, gate, installation,
    configurations, schedules, watch, digest, webhooks, logs, completion,
)  # fmt: skip


class Verb(Protocol):
    """A module with one verb or several."""

    def add(self, commands: Any, /) -> None: ...


def parser(verbs: Sequence[Verb] = ()) -> argparse.ArgumentParser:
    """The client's verbs, and `verbs` in addition."""
    made = Parser(
        prog="touchstone",
        description="Evaluates models with a Touchstone installation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.set_defaults(command=made)  # What `completion` completes.
    made.add_argument("--version", action="version", version=f"touchstone {__version__}")
    commands = made.add_subparsers(metavar="command", required=True)
    for verb in (*_VERBS, *verbs):
        verb.add(commands)
    return made


def main(arguments: Sequence[str] | None = None, verbs: Sequence[Verb] = ()) -> int:
    """Runs one command of the client's verbs or of `verbs`; prints the help if none is given.

    Returns the process's exit code. Errors go to stderr in one line.
    """
    made = parser(verbs)
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        made.print_help()
        return DONE
    options, unknown = made.parse_known_args(given)
    more = getattr(options, "more", "")
    if more and not any(word.startswith("-") for word in unknown):
        # argparse ends a list of arguments at the first option.
        setattr(options, more, [*getattr(options, more), *unknown])
    elif unknown:
        # The verb's own parser reports it like other wrong arguments, with the verb's exit code.
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    # Sentences name an argument as it was given.
    options.given = given
    try:
        code: int = options.do(options)
        sys.stdout.flush()
    except RefusedError as error:
        return _said(refusal(error), REFUSED)
    except (UnreachableError, ServiceError) as error:
        return _said(error.message, UNREACHABLE)
    except OSError as error:
        return _closed() if isinstance(error, BrokenPipeError) else _said(of_system(error), REFUSED)
    except KeyboardInterrupt:
        return _said("interrupted.", INTERRUPTED)
    return code


def _closed() -> int:
    # Python would complain at exit that stdout cannot be flushed.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _said(sentence: str, code: int) -> int:
    print(f"touchstone: {sentence}", file=sys.stderr)
    return code


__all__ = ["main", "parser"]
