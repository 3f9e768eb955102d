"""`touchstone bench`: experiments of models, prompts and scenarios, and people's scores of their answers."""

from __future__ import annotations

from typing import Any

from touchstone_client.command.arguments.declaring import group
from touchstone_client.command.bench import board, collect, definition_file, people


def add(commands: Any) -> None:
    verbs = group(commands, "bench", "run experiments: models × prompts × scenarios")
    for part in (collect, people, board, definition_file):
        part.add(verbs)


__all__ = ["add"]
