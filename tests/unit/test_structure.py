"""Rules of the source tree that no single module can show."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVICES = ("scheduler", "evaluator", "results", "gateway")
SHARED = ("environment", "errors", "further", "numbers", "patterns", "rpc", "bus")
PURE = (
    "services.further",
    "services.numbers",
    "services.patterns",
    "services.scheduler.job",
    "services.scheduler.queue",
    "services.scheduler.plan",
    "services.scheduler.reuse",
    "services.scheduler.budget",
    "services.scheduler.dataset_jobs",
    "services.scheduler.eta",
    "services.scheduler.flight",
    "services.scheduler.rates",
    "services.scheduler.cron",
    "services.scheduler.due",
    "services.scheduler.webhooks.message",
    "services.evaluator.units.notices",
    "services.evaluator.answers.reading.reader",
    "services.evaluator.answers.loglikelihood",
    "services.evaluator.answers.scoring",
    "services.evaluator.answers.rouge",
    "services.evaluator.answers.words",
    "services.evaluator.answers.scorers.choosing",
    "services.evaluator.datasets.rows",
    "services.evaluator.datasets.selection",
    "services.evaluator.pacing.shares",
    "services.evaluator.provider_batches.planning",
    "services.evaluator.pacing.turns",
    "services.results.aggregation",
    "services.results.averages",
    "services.results.statistics",
    *(f"services.results.paired.{path.stem}" for path in (ROOT / "services/results/paired").glob("[a-z]*.py")),
)
INPUT_OUTPUT = {
    "aiohttp", "asyncio", "datasets", "duckdb", "grpc", "http", "httpx", "io", "jinja2", "nats", "os", "pathlib",
    "pyarrow", "shutil", "socket", "sqlite3", "starlette", "subprocess", "tempfile", "threading", "urllib", "uvicorn",
}  # fmt: skip
LONGEST_FILE = 400
SUBJECT = re.compile(r"^(work|results|audit|dlq|logs)\.[\w*>{-]|\$(KV|JS)\.")
LOCKS = ("requirements/run.txt", "requirements/dev.txt")


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path, *, for_types: bool = True) -> Iterator[str]:
    """Every module that a file may import, as dotted names; of `from a import b` both a and a.b.

    `for_types=False` leaves out what stands under `if TYPE_CHECKING`, which never runs.
    """
    unused = {
        id(inner)
        for node in ast.walk(tree(path))
        if not for_types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree(path)):
        if id(node) in unused:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)} has a relative import"
            assert node.module
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_file(name: str) -> Path | None:
    """The file of a module of ours."""
    plain = ROOT / Path(*name.split("."))
    return next((path for path in (plain.with_suffix(".py"), plain / "__init__.py") if path.is_file()), None)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_imports_no_other_service(service: str) -> None:
    others = tuple(f"services.{other}" for other in SERVICES if other != service)
    files = sources(f"services/{service}")

    assert files
    assert [
        f"{relative(path)} imports {name}"
        for path in files
        for name in imports(path)
        if name.startswith(others)
    ] == []  # fmt: skip


@pytest.mark.parametrize("module", SHARED)
def test_shared_modules_import_no_service(module: str) -> None:
    services = tuple(f"services.{service}" for service in SERVICES)
    plain = ROOT / f"services/{module}.py"
    files = [plain] if plain.is_file() else sources(f"services/{module}")

    assert files
    assert [name for path in files for name in imports(path) if name.startswith(services)] == []


def test_services_share_these_modules_only() -> None:
    found = {
        path.stem for path in (ROOT / "services").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }

    assert found == {"__init__", *SHARED, *SERVICES}


def reached(module: str) -> Iterator[tuple[str, Path]]:
    """What runs as an import of a module of ours, through every module of ours that it imports, too."""
    seen, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        path = module_file(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        for imported in imports(path, for_types=False):
            yield imported, path
            if imported.startswith("services."):
                waiting.append(imported)
    assert module in seen


@pytest.mark.parametrize("module", PURE)
def test_pure_modules_reach_no_input_or_output(module: str) -> None:
    for imported, path in reached(module):
        assert imported.split(".")[0] not in INPUT_OUTPUT, f"{module} reaches {imported} through {relative(path)}"
        assert not imported.endswith("_pb2_grpc"), f"{module} reaches {imported} through {relative(path)}"


@pytest.mark.parametrize("module", ["catalogue", "lm_eval.suite", "providers.openai"])
def test_what_the_parity_check_runs_needs_neither_bus_nor_scorers(module: str) -> None:
    """Its environment has lm_eval, and of ours only what is asked there."""
    for imported, path in reached(f"services.evaluator.{module}"):
        assert imported.split(".")[0] not in ("grpc", "nats", "re2"), f"{imported} through {relative(path)}"


def test_only_the_contract_names_nats_subjects() -> None:
    def texts(path: Path) -> Iterator[str]:
        documentation = {
            id(node.body[0].value)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)

    found = {
        relative(path): sorted({text for text in texts(path) if SUBJECT.search(text)}) for path in sources("services")
    }

    assert found.pop("services/bus/contract.py")
    assert {path: subjects for path, subjects in found.items() if subjects} == {}


@pytest.mark.parametrize("folder", ["services", "client", "deploy", "web", "benchmarks"])
def test_no_file_is_longer_than_four_hundred_lines(folder: str) -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in sources(folder)}

    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s*#.*\n", "", text).strip())

    assert len(entries) > 40
    assert [entry for entry in entries if not re.fullmatch(r"[\w.-]+==[^ ]+( \\\s+--hash=sha256:\w{64})+", entry)] == []
    assert not re.search(r"://|index-url|find-links|file:|\s/", text)


def test_run_packages_are_the_same_versions_in_both_locks() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"(?m)^[\w.-]+==\S+", (ROOT / lock).read_text()))

    run, dev = (pins(lock) for lock in LOCKS)

    assert run < dev


def test_the_models_packages_are_pinned_without_addresses() -> None:
    lines = [line for line in (ROOT / "requirements/model.txt").read_text().splitlines() if line[0] != "#"]

    assert "torch==2.13.0" in lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_the_front_end_lock_has_hashes_and_no_address() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    fetched = {name: package for name, package in packages.items() if name}

    assert fetched
    assert [name for name, package in fetched.items() if "integrity" not in package or "resolved" in package] == []
