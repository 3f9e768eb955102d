"""What installed packages add to evaluators, as those announce it, and what is said of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from services.words import sentences
from touchstone.v1 import evaluator_pb2

SUITE, SCORER, PROVIDER = "suite", "scorer", "provider"
"""Parts of a package."""


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
        f"No running evaluator has the {what} {sentences.shown(name)} of the plug-in {plugin}. Install it where an "
        "evaluator runs, and restart that evaluator."
    )


def not_everywhere(what: str, name: str, plugin: str, evaluator: str) -> str:
    """An evaluator that got a part of the job's work does not have what another one has."""
    return (
        f"Evaluator {evaluator} does not have the {what} {sentences.shown(name)} of the plug-in {plugin}, which "
        "another evaluator has. Install one version on all evaluators, then start the job again."
    )
