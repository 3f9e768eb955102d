"""The arguments that name a judge and its rubric."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from services.words import rubrics
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import of_files
from touchstone_client.errors import InvalidError
from touchstone_client.specs import judge_spec

RUBRIC = "a JSON file that says what is judged; - for standard input"


def add_judge(parser: argparse.ArgumentParser) -> None:
    """A judge of the answers that a new job will have."""
    words = "a model, or model@endpoint, that judges the answers once the job is completed; needs --judge-rubric"
    add_judge_model(parser, words)
    of_files(parser.add_argument("--judge-rubric", default="", metavar="FILE", help=RUBRIC))


def add_judge_model(parser: argparse.ArgumentParser, words: str) -> None:
    """The judge without its rubric; `words` are the help."""
    parser.add_argument("--judge-model", default="", metavar="MODEL", help=words)
    words = "the judge's endpoint; not needed where only one has the model"
    parser.add_argument("--judge-endpoint", "--judge-provider", default="", metavar="ENDPOINT", help=words)


def check_judge(options: argparse.Namespace) -> None:
    """Ends the command for arguments that do not go together."""
    if bool(options.judge_model) != bool(options.judge_rubric):
        options.parser.error("a judge needs --judge-model and --judge-rubric")
    if options.judge_endpoint and not options.judge_model:
        options.parser.error("--judge-endpoint needs --judge-model")


def judges_of(client: Client, options: argparse.Namespace) -> list[job_pb2.Judge]:
    """The judge that the arguments name, if any. Raises what `rubric_of` and `Client.targets` raise."""
    if not options.judge_model:
        return []
    rubric = rubric_of(options.judge_rubric)
    (target,) = client.targets([options.judge_model], options.judge_endpoint)
    return [judge_spec(endpoint=target.endpoint, model=target.model, rubric=rubric)]


def rubric_of(file: str) -> str:
    """The rubric in a file, as JSON. Raises InvalidError, with its first mistake, and OSError."""
    place = "standard input" if file == "-" else file
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidError.of(f"The rubric in {place} is not UTF-8 text.") from None
    try:
        return rubrics.written(rubrics.parse(text))
    except ValueError as error:
        raise InvalidError.of(f"The rubric in {place} {error}{_where(text)}.") from error


def _where(text: str) -> str:
    """What is wrong with a text that is not JSON, and where."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f": {error.msg} at line {error.lineno}, character {error.colno}"
    except (ValueError, RecursionError):
        pass
    return ""
