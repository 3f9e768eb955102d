"""`touchstone token`: creates, lists and revokes tokens, where the services are installed and NATS can be reached."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from services.errors import TouchstoneError, UnavailableError
from touchstone_client.command.arguments.declaring import days, group, leaf
from touchstone_client.command.exits import DONE, REFUSED, UNREACHABLE


def add(commands: Any) -> None:
    verbs = group(commands, "token", "create and revoke users' tokens (for operators, on the machine of the services)")
    parser = leaf(verbs, "create", "create a token and print it once", _token)
    parser.add_argument("--user", required=True)
    parser.add_argument("--role", choices=("admin", "user"), default="user")
    parser.add_argument("--label", default="", help="what it is for, e.g. ci")
    parser.add_argument("--expires-days", type=days, metavar="N", help="(default: never)")
    parser.set_defaults(words=_create)
    leaf(verbs, "list", "list tokens, without their text", _token).set_defaults(words=lambda options: ["list"])
    parser = leaf(verbs, "revoke", "revoke a token", _token)
    parser.add_argument("name", help="its label, or the start of its prefix in the list")
    parser.set_defaults(words=lambda options: ["revoke", options.name])


def _create(options: argparse.Namespace) -> list[str]:
    words = ["create", f"--user={options.user}", f"--role={options.role}", f"--label={options.label}"]
    return words + ([f"--expires-days={options.expires_days}"] if options.expires_days else [])


def _token(options: argparse.Namespace) -> int:
    """The gateway has the same command; tokens belong to the installation, not to its public services."""
    # Slow to import, and needed only here.
    from services.gateway.access import tokens

    try:
        tokens.main(options.words(options))
    except UnavailableError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        return UNREACHABLE
    except TouchstoneError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        return REFUSED
    return DONE
