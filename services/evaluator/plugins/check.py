"""What is wrong with a suite module or a package of plug-ins: `touchstone suite check`. Runs the author's code here."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from services.errors import InvalidRequestError, TouchstoneError
from services.evaluator.data.reader import DataMissingError, Reader
from services.evaluator.items.task import Continuation, Item, Response, Scored, Task
from services.evaluator.plugins.child import imported, require_kind, require_scorer
from services.evaluator.plugins.contract import GROUPS, Package, Part, packages, said, unusable
from services.evaluator.plugins.registry import built_in
from services.evaluator.plugins.remote import unfit_statistics
from services.evaluator.suites import declared
from services.evaluator.tasks.kinds.definition import Definition
from services.words.enums import mode_name
from services.words.plugins import SCORER, SUITE
from touchstone.v1 import item_result_pb2, suite_pb2

ITEMS = 20
"""Items of each task that are looked at."""
_SHOTS = 2


class Report:
    """What was looked at, and what is wrong: sentences that begin with the part's or the task's name."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.problems: list[str] = []
        self._tell = tell

    def wrong(self, where: str, problem: str) -> None:
        line = f"{where}: {problem}"
        if line not in self.problems:
            self.problems.append(line)
            self._tell(line)

    def note(self, line: str) -> None:
        self._tell(line)


def check(
    target: str, data_dir: Path | None, tell: Callable[[str], None], at: Callable[[str], None] = lambda where: None
) -> bool:
    """Whether nothing is wrong with a module's file, a package's folder (with pyproject.toml), or an installed package.
    A line to `tell` for each thing that is wrong, and for what was looked at; to `at`, what is looked at next. Raises
    InvalidRequestError for any other target."""
    report, reader = Report(tell), Reader(data_dir)
    path = Path(target)
    if path.is_dir():
        parts = _declared_parts(path)
    elif path.suffix == ".py":
        parts = [Part(SUITE, "", _module_of(path))]
    else:
        parts = [part for package in packages() if package.name == target for part in package.parts]
    if not parts:
        raise InvalidRequestError(
            f"{target} is not a suite's file, a folder with entry points in its pyproject.toml, or an installed "
            "package with plug-ins."
        )
    refused = unusable([Package(target, "", tuple(part for part in parts if part.name))], built_in())
    for part in parts:
        at(part.label if part.name else part.value)
        if why := refused.get((target, part)):
            report.wrong(part.label, why)
        _check_part(part, reader, report)
    return not report.problems


def check_apart(target: str, data_dir: Path | None, tell: Callable[[str], None]) -> bool:
    """As `check`, in a separate process, because the author's code may end it."""
    ours, theirs = Pipe(duplex=False)
    # Without the present folder, where the author's files may have the names of modules of Python's own.
    command = [sys.executable, "-P", "-m", __spec__.name, str(theirs.fileno()), target, str(data_dir or "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
    theirs.close()
    where = target
    try:
        while True:
            match ours.recv():
                case ("line", line):
                    tell(line)
                case ("at", where):
                    pass
                case ("refused", message):
                    raise InvalidRequestError(message)
                case ("done", fine):
                    return bool(fine)
    except EOFError:
        code = process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        tell(f"{where}: The code ended the process with {how}.")
        return False
    finally:
        process.kill()
        process.wait()


def _check_for(teller: Connection, target: str, data_dir: Path | None) -> None:
    try:
        fine = check(
            target, data_dir, lambda line: teller.send(("line", line)), lambda where: teller.send(("at", where))
        )
    except TouchstoneError as error:
        teller.send(("refused", error.message))
    else:
        teller.send(("done", fine))


def _module_of(path: Path) -> str:
    """The dotted name of a file's module, whose top folder is put on the path."""
    if not path.is_file():
        raise InvalidRequestError(f"There is no file {path}.")
    path = path.resolve()
    names = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path.insert(0, str(folder))
    return ".".join(names)


def _declared_parts(folder: Path) -> list[Part]:
    file = folder / "pyproject.toml"
    try:
        groups = tomllib.loads(file.read_text()).get("project", {}).get("entry-points", {})
        named = [
            (what, name, value)
            for group, what in GROUPS.items()
            for name, value in sorted(groups.get(group, {}).items())
        ]
    except OSError as error:
        raise InvalidRequestError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidRequestError(f"{file} cannot be read: {error}.") from error
    except AttributeError as error:
        raise InvalidRequestError(f"project.entry-points of {file} must be tables of names and values.") from error
    if wrong := [name for _, name, value in named if not isinstance(value, str)]:
        raise InvalidRequestError(f'The entry point {wrong[0]} of {file} must be a text such as "package.module".')
    sys.path[:0] = [str(folder / "src"), str(folder)]
    return [Part(*each) for each in named]


def _check_part(part: Part, reader: Reader, report: Report) -> None:
    where = part.label if part.name else part.value
    try:
        found = imported(part)
        if part.what == SUITE:
            _check_suite(declared(found, part.name).definitions, found, reader, report)
        elif part.what == SCORER:
            scorer = require_scorer(part.name, found)
            report.note(f"{where}: version {scorer.version}")
        else:
            report.note(f"{where}: {require_kind(found).kind.label}")
    except TouchstoneError as error:
        report.wrong(where, error.message)
    except BaseException as error:
        report.wrong(where, f"It cannot be imported: {said(error)}.")


def _check_suite(definitions: Sequence[Definition], module: object, reader: Reader, report: Report) -> None:
    suite = definitions[0].suite
    if len(definitions) > 1 and not hasattr(module, "WEIGHTING"):
        report.wrong(suite, "WEIGHTING is missing: the rule by which a suite of several tasks is scored.")
    for definition in definitions:
        where = f"{suite}/{definition.task}"
        try:
            _check_columns(definition, reader, where, report)
        except DataMissingError as error:
            report.wrong(where, error.message)
            continue
        except BaseException as error:
            report.wrong(where, _words("its data cannot be read", error))
            continue
        for mode in definition.modes:
            for shots in sorted({0, min(_SHOTS, definition.most_shots)}):
                try:
                    task = definition.task_on(reader, mode, shots)
                    _check_task(task, where, report)
                except BaseException as error:  # Also what ends a process, such as SystemExit.
                    how = f"{mode_name(mode)} mode{f' with {shots} examples' if shots else ''}"
                    report.wrong(where, _words(f"it does not plan in {how}", error))


def _words(what: str, error: BaseException) -> str:
    if isinstance(error, TouchstoneError):
        return error.message
    if isinstance(error, KeyError):
        return f"{what[0].upper()}{what[1:]}: a template or a function names {error}, which the rows do not have."
    return f"{what[0].upper()}{what[1:]}: {said(error)}."


def _check_columns(definition: Definition, reader: Reader, where: str, report: Report) -> None:
    """A column that the data does not have reads as empty."""
    for source, split in definition.splits():
        table = reader.read(source, split, definition.schema()).table
        if not table.num_rows:
            report.wrong(where, f"{source.name(split)} has no rows.")
        if source.rows is not None and not Reader(None).read(source, split, definition.schema()).table.equals(table):
            report.wrong(
                where, f"The rows of {source.name(split)} differ from call to call. Give the same ones always."
            )
        for name in table.column_names if table.num_rows else ():
            if _is_empty(table[name]):
                report.wrong(where, f"Column {name} is empty in all rows of {source.name(split)}. Is that its name?")


def _is_empty(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type):
        return not pc.any(pc.not_equal(column, "")).as_py()
    return bool(column.null_count == len(column))


def _check_task(task: Task, where: str, report: Report) -> None:
    size = task.size()
    published = task.info.published_items
    if published and published != size and not task.shots:
        report.note(f"{where}: published_items is {published:,}; the data here has {size:,} items")
    indexes = range(min(ITEMS, size))
    items = list(task.items(indexes))
    if [item for index in indexes for item in task.items([index])] != items:
        report.wrong(where, "Its items differ from call to call. Make them depend on the row alone.")
    if len({item.hash for item in items}) < len(items):
        report.wrong(where, "Two of its rows are the same. Leave one out.")
    known = len(report.problems)
    for item in items:
        _check_item(task, item, where, report)
        if len(report.problems) > known:
            break  # The others are wrong in the same way.
    how = f"{mode_name(task.mode)} mode{f', {task.shots} examples' if task.shots else ''}"
    report.note(f"{where}: {len(items)} of {size:,} items looked at in {how}")


def _check_item(task: Task, item: Item, where: str, report: Report) -> None:
    number = f"item {item.index}"
    if not item.reference:
        report.wrong(where, f"{number} has no right answer.")
        return
    labels = item.labels or task.labels
    if labels and item.reference not in labels:
        report.wrong(where, f"{number} has the right answer {item.reference!r}, which is none of {', '.join(labels)}.")
        return
    right = task.score(item, saying(task, item, item.reference))
    for problem in _not_right(task, right):
        report.wrong(where, f"{number}: a response with the right answer, {item.reference!r}, {problem}")
    false = task.score(item, saying(task, item, wrong(task, item)))
    if task.scale is None and false.statistics.get("correct", 0.0) != 0.0:
        report.wrong(where, f"{number}: a response with the wrong answer {wrong(task, item)!r} counts as right.")
    if task.mode == suite_pb2.MODE_GENERATE and task.score(item, Response("")).statistics.get("correct", 0.0):
        report.wrong(where, f"{number}: an empty response counts as right.")


def _not_right(task: Task, scored: Scored) -> Iterator[str]:
    if scored.outcome != item_result_pb2.OUTCOME_ANSWERED:
        yield f"is not read ({scored.extraction})."
        return
    if unfit := unfit_statistics(scored.statistics, task.metrics, ()):
        yield f"cannot be scored: {unfit}."
        return
    for metric in task.metrics:
        if not metric.statistic:
            continue
        value = scored.statistics.get(metric.statistic)
        if value is None:
            yield f"has no statistic {metric.statistic}, which the metric {metric.metric} needs."
        elif value != 1.0 and task.scale is None:
            yield f"scores {value:g} in {metric.statistic}, not 1."


def saying(task: Task, item: Item, label: str) -> Response:
    """The response of a model that is sure of this answer."""
    if task.mode == suite_pb2.MODE_GENERATE:
        return Response(task.answer(label))
    place = (item.labels or task.labels).index(label)
    scored = (Continuation(text, -0.1 if number == place else -1e4, 1) for number, text in enumerate(item.choices))
    return Response("", continuations=tuple(scored))


def wrong(task: Task, item: Item) -> str:
    """An answer that is not right; of another form than the right one where the task has no labels."""
    right = {answer.casefold() for answer in (item.reference, *item.answers)}
    for label in item.labels or task.labels:
        if label.casefold() not in right:
            return label
    return str(float(item.reference) + 1) if item.reference.lstrip("-").isdigit() else "nothing of the kind"


if __name__ == "__main__":
    _check_for(Connection(int(sys.argv[1])), sys.argv[2], Path(sys.argv[3]) if sys.argv[3] else None)
