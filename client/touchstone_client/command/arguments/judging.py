"""The arguments that name a judge and its rubric."""

from __future__ import annotations

import argparse
import json
from typing import Any, cast

from services.experiments import files
from services.words import rubrics
from services.words.job_options import MOST_BUDGET_USD
from services.words.sampling import PARAMETERS, SamplingParameters
from touchstone.v1 import job_pb2
from touchstone_client.client import Client
from touchstone_client.command.arguments.declaring import between, json_object, of_files, read_file
from touchstone_client.errors import InvalidError
from touchstone_client.specs import judge_spec, sampling_parameters

_MOST_BYTES = 1024 * 1024
"""Of a file with a rubric."""
RUBRIC = "a JSON file that says what is judged; - for standard input"

_MODEL, _CUSTOM = "model", "custom_config"


def add_judge(parser: argparse.ArgumentParser) -> None:
    """A judge of the answers that a new job will have."""
    words = "a model, or model@endpoint, that judges the answers once the job is completed; needs --judge-rubric"
    parser.add_argument("--judge-model", default="", metavar="MODEL", help=words)
    words = "the judge's endpoint; not needed where only one has the model"
    parser.add_argument("--judge-endpoint", "--judge-provider", default="", metavar="ENDPOINT", help=words)
    of_files(parser.add_argument("--judge-rubric", default="", metavar="FILE", help=RUBRIC))


class _OfJudge(argparse.Action):
    """Adds to a list of judges, each a table of its arguments: those after a judge's model are of that judge. Those
    before the first model are of the first judge."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: Any, option_string: object = None
    ) -> None:
        judges: list[dict[str, Any]] = [*(getattr(namespace, self.dest) or [{}])]
        name = str(self.const)
        if name == _MODEL and _MODEL in judges[-1]:
            judges.append({})
        judges[-1] = judges[-1] | {name: values}
        setattr(namespace, self.dest, judges)


def add_judges(parser: argparse.ArgumentParser, words: str) -> None:
    """Up to three judges without a rubric, each with its options: a list of tables in `options.judges`. `words` are
    the help of a judge's model."""

    def add(name: str, *flags: str, **known: Any) -> None:
        parser.add_argument(*flags, action=_OfJudge, const=name, dest="judges", default=[], **known)

    words = f"{words}. May be given up to {rubrics.MOST_JUDGES} times; its options follow it"
    add(_MODEL, "--judge-model", metavar="MODEL", help=words)
    words = "the judge's endpoint; not needed where only one has the model"
    add("endpoint", "--judge-endpoint", "--judge-provider", metavar="ENDPOINT", help=words)
    words = "how often the judge judges each answer (default: 1)"
    add("repeats", "--judge-repeats", type=between(1, rubrics.MOST_REPEATS), metavar="N", help=words)
    for name, one in PARAMETERS.items():
        reads = between(int(one.low), one.high, whole=one.whole)
        add(name, one.judge_flag, type=reads, metavar="N", help=f"of the judge: {one.help}")
    words = "of the judge: merged into the provider's request as it is"
    add(_CUSTOM, "--judge-custom-config", type=json_object, metavar="JSON", help=words)
    words = "US dollars for each model's answers, with --judge-max-tokens (default: any amount)"
    add("budget_usd", "--judge-budget-usd", type=between(0, MOST_BUDGET_USD, whole=False), metavar="N", help=words)


def check_judges(options: argparse.Namespace) -> None:
    """Ends the command for arguments that do not go together."""
    if any(_MODEL not in one for one in options.judges):
        options.parser.error("the other options of a judge need --judge-model")
    if any(one.get("budget_usd") and not one.get("max_tokens") for one in options.judges):
        options.parser.error("--judge-budget-usd needs --judge-max-tokens, which limits the cost of a judgement")
    if len(options.judges) > rubrics.MOST_JUDGES:
        options.parser.error(f"--judge-model may be given up to {rubrics.MOST_JUDGES} times")


def several_judges(client: Client, options: argparse.Namespace) -> list[job_pb2.Judge]:
    """The judges that the arguments of `add_judges` name. Raises what `Client.targets` raises."""
    found = []
    for one in options.judges:
        (target,) = client.targets([one[_MODEL]], one.get("endpoint", ""))
        known = {name: one[name] for name in ("repeats", "budget_usd") if one.get(name)}
        parameters = {name: one[name] for name in PARAMETERS if name in one}
        if parameters or one.get(_CUSTOM):
            known["sampling"] = sampling_parameters(one.get(_CUSTOM), **cast(SamplingParameters, parameters))
        found.append(judge_spec(endpoint=target.endpoint, model=target.model, **known))
    return found


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
    """The rubric in a file, as JSON. Raises InvalidError, with its mistakes, and OSError."""
    place, data = read_file(file, _MOST_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidError.of(f"The rubric in {place} is not UTF-8 text.") from None
    try:
        return rubrics.written(rubrics.parse(text))
    except rubrics.RubricError as error:
        if where := _where(text):
            raise InvalidError.of(f"The rubric in {place} {error}{where}.") from error
        known = files.lines(text, is_json=True)
        lines = {n: line for n, (path, _) in enumerate(error.mistakes) if (line := files.line_of(known, path))}
        raise InvalidError.of(f"The rubric in {place} {rubrics.RubricError(error.mistakes, lines)}.") from error


def _where(text: str) -> str:
    """What is wrong with a text that is not JSON, and where."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f": {error.msg} at line {error.lineno}, character {error.colno}"
    except (ValueError, RecursionError):
        pass
    return ""
