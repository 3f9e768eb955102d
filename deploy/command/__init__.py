"""The `touchstone` command where the services are installed: the client's verbs, and those that administer a server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import touchstone_client.command as client
from deploy.command import backups, data, suite, token

_VERBS = (data, suite, token, backups)


def parser() -> argparse.ArgumentParser:
    return client.parser(_VERBS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process's exit code."""
    return client.main(arguments, _VERBS)


__all__ = ["main", "parser"]
