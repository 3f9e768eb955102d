"""Imports made of logs, where these suites are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.client.logs import choices, lm_eval
from touchstone.v1 import suite_pb2
from touchstone_client.importing import reading
from touchstone_client.importing.log import Log
from touchstone_client.importing.names import resolve
from touchstone_client.importing.sending import Import

SUITES = {
    "glue": ("rte", "sst2", "mnli", "mnli_mismatched"),
    "superglue": ("rte", "wsc"),
    "mmlu": ("anatomy", "virology"),
    "medical": ("anatomy", "medqa"),
    "mmlu_pro": ("law", "computer_science"),
}
KNOWN = [
    suite_pb2.Suite(suite=suite, tasks=[suite_pb2.TaskInfo(task=task) for task in tasks])
    for suite, tasks in SUITES.items()
]
ROW = {"sentence1": "A.", "sentence2": "B.", "label": 1}
SCORED = [(" True", -1.5), (" False", -2.25)]


def made(logs: list[Log], suite: str = "", **named: str) -> Import:
    chosen, targets = resolve(logs, KNOWN, suite, named)
    return Import(logs, "m", chosen, targets)


def answers(logs: list[Log], suite: str = "", **named: str) -> list[Any]:
    return [answer for request in made(logs, suite, **named).requests() for answer in request.answers]


GOOD = choices(0, ROW, "A?", SCORED)


def log(tmp_path: Path, task: str) -> Log:
    return reading.read([lm_eval(tmp_path / task, task, [GOOD])])[0]
