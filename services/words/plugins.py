"""What installed packages add to evaluators, as those announce it, and what is said of it. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from services.words import refusals
from services.words import scorers as words_of_scorers
from touchstone.v1 import evaluator_pb2, job_pb2

SUITE, SCORER, PROVIDER = "suite", "scorer", "provider"
"""Parts of a package."""
NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""Of a part: of its suite, scorer or kind."""


def usable(evaluators: Iterable[evaluator_pb2.Evaluator], what: str) -> Iterator[tuple[str, evaluator_pb2.PluginPart]]:
    """The parts of one sort that are not left out, each with its package and version: "touchstone-example 1.0"."""
    for evaluator in evaluators:
        for plugin in evaluator.plugins:
            for part in plugin.parts:
                if part.part == what and not part.left_out:
                    yield f"{plugin.package} {plugin.version}", part


def scorers(evaluators: Iterable[evaluator_pb2.Evaluator]) -> dict[str, str]:
    """Titles of the scorers, by name and in the order of names."""
    return dict(sorted((part.name, part.title) for _, part in usable(evaluators, SCORER)))


def left_out(evaluators: Iterable[evaluator_pb2.Evaluator]) -> list[str]:
    """A line for each part that is left out somewhere: "touchstone-example 1.0, suite sums: ValueError: no rows."."""
    return list(
        dict.fromkeys(
            f"{plugin.package} {plugin.version}, {part.part} {part.name}: {part.left_out}"
            for evaluator in evaluators
            for plugin in evaluator.plugins
            for part in plugin.parts
            if part.left_out
        )
    )


def not_running(what: str, name: str, plugin: str) -> str:
    """No running evaluator has a part that another one had."""
    return (
        f"No running evaluator has the {what} {refusals.shown(name)} of the plug-in {plugin}. Install it where an "
        "evaluator runs, and restart that evaluator."
    )


def waited_in_vain(needed: str, endpoint: str, waited: str) -> str:
    """No running evaluator of the endpoint has had what a job needs."""
    return (
        f"No running evaluator that serves {endpoint} has had {needed} for {waited}. Install it where such an "
        "evaluator runs, restart that evaluator, then retry the job."
    )


def parts_of(spec: job_pb2.JobSpec) -> tuple[str, list[str]]:
    """The parts of a package that a job may need, and their names: its suite, or those of its scorers that are not
    built in."""
    if spec.HasField("dataset"):
        named = (scoring.scorer for scoring in words_of_scorers.all_of_job(spec))
        return SCORER, list(dict.fromkeys(name for name in named if name not in words_of_scorers.SCORERS))
    return SUITE, [spec.suite.suite]


def owners(evaluators: Iterable[evaluator_pb2.Evaluator], what: str, names: Iterable[str]) -> set[str]:
    """The packages that offer all of these parts, each with its version."""
    wanted = set(names)
    offered: defaultdict[str, set[str]] = defaultdict(set)
    for owner, part in usable(evaluators, what):
        offered[owner].add(part.name)
    return {owner for owner, parts in offered.items() if wanted <= parts}


def of_several(names: Iterable[str]) -> str:
    """The scorers of one run belong to several packages."""
    named = " and ".join(map(refusals.shown, names))
    return (
        f"The scorers {named} belong to different plug-ins. A run takes scorers of one plug-in, next to built-in ones. "
        "Leave one out."
    )
