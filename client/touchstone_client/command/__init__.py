"""The `touchstone` command. Each verb is a module with `add(commands)`, which also says what runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from touchstone_client.command import (
    annotate,
    compare,
    completion,
    configurations,
    control,
    data,
    dataset,
    estimate,
    export,
    gate,
    import_logs,
    installation,
    items,
    jobs,
    keeping,
    leaderboard,
    logs,
    receipt,
    rerun,
    rescore,
    results,
    run,
    schedules,
    side_by_side,
    token,
    webhooks,
)
from touchstone_client.command.arguments import Parser, of_system
from touchstone_client.command.exits import INTERRUPTED, PIPE_CLOSED, REFUSED, UNREACHABLE
from touchstone_client.command.flags import refusal
from touchstone_client.errors import RefusedError, ServiceError, UnreachableError

_EPILOG = """\
environment:
  TOUCHSTONE_SCHEDULER  the scheduler's host:port (127.0.0.1:8051)
  TOUCHSTONE_RESULTS    the results service's host:port (127.0.0.1:8052)
  TOUCHSTONE_TOKEN      your token, where the installation asks for one
  TOUCHSTONE_TLS_CA     PEM file of the authority to trust, for TLS; system for public ones
  TOUCHSTONE_TLS_CLIENT_CERT, TOUCHSTONE_TLS_CLIENT_KEY
                        PEM files, where the installation asks for a client certificate
  NO_COLOR              any text: no colours

exit codes:
  0 done   1 the job failed, was cancelled or is incomplete   2 refused   3 a service does not answer or failed
  130 interrupted. `touchstone gate --help` tells those of the gate.
"""
_VERBS = (
    run, estimate, results, jobs, items, annotate, side_by_side, compare, leaderboard, receipt, control, rescore, rerun,
    dataset, import_logs, export, gate, installation, configurations, schedules, webhooks, logs, data, token,
    keeping, completion,
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="touchstone",
        description="Evaluates models with a Touchstone installation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = made.add_subparsers(metavar="command", required=True)
    for verb in _VERBS:
        verb.add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process's exit code. Errors go to stderr in one line."""
    options, unknown = parser().parse_known_args(arguments)
    more = getattr(options, "more", "")
    if more and not any(word.startswith("-") for word in unknown):
        # argparse ends a list of arguments at the first option.
        getattr(options, more).extend(unknown)
    elif unknown:
        # The verb's own parser says so, as it says what else is wrong with its arguments, with its own exit code.
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
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
    # Python would complain at its end that stdout cannot be flushed.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _said(sentence: str, code: int) -> int:
    print(f"touchstone: {sentence}", file=sys.stderr)
    return code


__all__ = ["main", "parser"]
