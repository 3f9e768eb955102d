"""The arguments that choose items: `items`, `export` and `side-by-side` share them."""

from __future__ import annotations

import argparse

from services.words.enums import VERDICTS
from touchstone_client.command.arguments.declaring import span, whole_span
from touchstone_client.requests import ItemFilters


def add_conditions(parser: argparse.ArgumentParser, whose: str = "") -> None:
    """`whose` begins the help of each, such as "of items: "."""
    add = parser.add_argument
    add("--task", default="", help=f"{whose}only of this task")
    words = f"{whose}text that prompt, response, prediction, reference, row id or metadata contains"
    add("--query", default="", metavar="TEXT", help=words)
    add("--custom-id", default="", metavar="ID", help=f"{whose}the row with this id")
    add("--reference", metavar="TEXT", help=f"{whose}with exactly this right answer")
    words = f"{whose}with exactly this prediction; '' for those of which nothing was read"
    add("--prediction", metavar="TEXT", help=words)
    words = f"{whose}metadata that contains a text, in any field or in the one named"
    add("--metadata", type=_metadata, default=("", ""), metavar="[FIELD=]TEXT", help=words)
    words = f"{whose}characters of the response, both ends included; one may be left out"
    add("--length", type=whole_span, metavar="LOW..HIGH", help=words)
    add("--score", type=span, metavar="LOW..HIGH", help=f"{whose}the item's score, e.g. 0.5..1")
    words = f"{whose}with this annotation, or none for those without one; may be repeated"
    add("--verdict", dest="verdicts", choices=[*VERDICTS], action="append", default=[], help=words)


def conditions(options: argparse.Namespace) -> ItemFilters:
    """Arguments that were not given are empty or left out."""
    field, value = options.metadata
    said: ItemFilters = {
        "task": options.task,
        "query": options.query,
        "custom_id": options.custom_id,
        "metadata_field": field,
        "metadata_value": value,
        "verdicts": options.verdicts,
    }
    if options.reference is not None:
        said["reference"] = options.reference
    if options.prediction is not None:
        said["prediction"] = options.prediction
    if options.length:
        said["length"] = options.length
    if options.score:
        said["score"] = options.score
    return said


def _metadata(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    return (field, value) if equals else ("", field)
