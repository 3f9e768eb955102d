"""Folders of modules: how many each holds, what each says of itself, that none depend on each other in a circle, and
that unit tests mirror them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import mean

import pytest

from tests.unit.test_structure import ROOT, module_file, nodes, relative, sources

HOUSES = (
    "services/results",
    "services/scheduler",
    "services/evaluator",
    "services/gateway",
    "client/touchstone_client",
)
MOST_MODULES = 15
SHORT = 40
MOST_SHORT = 0.03
LEAST_MEAN = 140
"""Lines of the services' modules: what is short joins a fitting module, so that few files are to be known."""
PRODUCT = ("services", "client/touchstone_client")
UNIT = ROOT / "tests/unit"
LEAST_TESTED = 0.6
"""Share of the product's modules that have a test of their name."""


def room(path: str) -> str:
    """The node that a module is counted as: its folder.

    A service's own modules wire its folders or are shared by them, and a package's `__init__` may list its modules, so
    each of these stands for itself.
    """
    folder = path.rpartition("/")[0]
    return path if path.endswith("__init__.py") or folder.count("/") == 1 else folder


def imported(path: Path) -> Iterator[Path]:
    """The files of ours that a file imports: of `from package import module` the module's alone."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [(alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(f"{node.module}.{alias.name}", str(node.module)) for alias in node.names]
        else:
            continue
        for inner, outer in names:
            if (target := module_file(inner) or module_file(outer)) is not None:
                yield target


@pytest.mark.parametrize("house", HOUSES)
def test_folders_do_not_import_each_other_in_a_circle(house: str) -> None:
    graph: dict[str, set[str]] = {}
    for path in sources(house):
        here = room(relative(path))
        rooms = {room(relative(target)) for target in imported(path) if relative(target).startswith(house)}
        graph.setdefault(here, set()).update(rooms - {here})

    assert any(graph.values())
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize("house", HOUSES)
def test_no_folder_holds_more_than_fifteen_modules(house: str) -> None:
    counts = Counter(relative(path.parent) for path in sources(house) if path.name != "__init__.py")

    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_the_services_have_few_short_modules() -> None:
    modules = [path for path in sources("services") if not path.name.startswith("__")]
    lines = [len(path.read_text().splitlines()) for path in modules]

    assert len(lines) > 300
    assert sum(count < SHORT for count in lines) <= MOST_SHORT * len(lines)
    assert mean(lines) >= LEAST_MEAN


@pytest.mark.parametrize("house", ["services", "client", "deploy", "web", "benchmarks"])
def test_every_package_says_what_it_holds(house: str) -> None:
    packages = [path for path in sources(house) if path.name == "__init__.py"]

    assert packages
    assert [relative(path) for path in packages if not ast.get_docstring(ast.parse(path.read_text()))] == []


def mirrored(path: Path) -> Path:
    """Where unit tests of a product's module or folder are."""
    parts = path.relative_to(ROOT).parts
    below = ("client", *parts[2:]) if parts[0] == "client" else parts[1:]
    folder = UNIT.joinpath(*below)
    return folder.with_name(f"test_{folder.name}") if path.suffix else folder


def test_most_modules_have_a_test_of_their_name() -> None:
    modules = [path for house in PRODUCT for path in sources(house) if not path.name.startswith("__")]
    tested = [path for path in modules if mirrored(path).exists()]

    assert len(modules) > 500
    assert len(tested) / len(modules) >= LEAST_TESTED


def test_every_folder_of_unit_tests_mirrors_one_of_the_product() -> None:
    folders = {mirrored(path.parent) for house in PRODUCT for path in sources(house)}
    tests = {path.parent for path in UNIT.rglob("test_*.py")}

    assert tests
    assert sorted(relative(folder) for folder in tests - folders - {UNIT}) == []
