"""Rules of the source tree that no single module can show."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from services.words.job_options import ALL
from services.words.sampling import BY_REST_NAME, PARAMETERS
from services.words.scorers import OPTIONS

ROOT = Path(__file__).parents[2]
SERVICES = ("scheduler", "evaluator", "results", "gateway")
SHARED = (
    *("environment", "errors", "decision_order", "expected_calls", "further_fields", "json_schemas", "json_values"),
    *("numbers", "patterns", "pem"),
    *("rpc", "bus", "telemetry", "words", "chat_requests", "experiments"),
)
PURE = (
    "services.expected_calls",
    "services.further_fields",
    "services.json_schemas",
    "services.json_values",
    "services.numbers",
    "services.patterns",
    "services.scheduler.jobs.job",
    "services.scheduler.jobs.queue",
    "services.scheduler.jobs.units",
    "services.scheduler.jobs.reuse",
    "services.scheduler.jobs.budget",
    "services.scheduler.admission.dataset_rules",
    "services.scheduler.jobs.eta",
    "services.scheduler.schedules.cron",
    "services.scheduler.webhooks.deliveries",
    "services.evaluator.pacing.notices",
    "services.evaluator.answers.reading.reader",
    "services.evaluator.answers.scoring",
    "services.evaluator.answers.scorers.texts",
    "services.evaluator.answers.words",
    "services.evaluator.answers.scorers.choosing",
    "services.evaluator.datasets.rows",
    "services.evaluator.pacing.shares",
    "services.evaluator.provider_batches.planning",
    "services.evaluator.pacing.fair_queue",
    "services.results.scores.aggregation",
    "services.results.scores.suite_score",
    *(f"services.results.statistics.{name}" for name in ("agreement", "bounded_means", "metric_values")),
    "services.results.statistics.prediction_powered",
    *(f"services.results.paired.{path.stem}" for path in (ROOT / "services/results/paired").glob("[a-z]*.py")),
    *(f"services.results.sequential.{path.stem}" for path in (ROOT / "services/results/sequential").glob("[a-z]*.py")),
    *(f"services.chat_requests.{path.stem}" for path in (ROOT / "services/chat_requests").glob("[a-z]*.py")),
    *(f"services.words.{path.stem}" for path in (ROOT / "services/words").glob("[a-z]*.py")),
    *(f"services.experiments.{path.stem}" for path in (ROOT / "services/experiments").glob("[a-z]*.py")),
)
INPUT_OUTPUT = {
    "aiohttp", "asyncio", "datasets", "duckdb", "grpc", "http", "httpx", "io", "jinja2", "nats", "os", "pathlib",
    "pyarrow", "shutil", "socket", "sqlite3", "starlette", "subprocess", "tempfile", "threading", "urllib", "uvicorn",
}  # fmt: skip
LONGEST_FILE = 400
SUBJECT = re.compile(r"^(work|results|audit|dlq|logs)\.[\w*>{-]|\$(KV|JS)\.")
LOCKS = ("requirements/run.txt", "requirements/image.txt", "requirements/dev.txt")


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's tree, which most rules go through."""
    return tuple(ast.walk(tree(path)))


@cache
def containers(path: Path) -> tuple[ast.Dict | ast.List | ast.Set | ast.Tuple, ...]:
    return tuple(node for node in nodes(path) if isinstance(node, ast.Dict | ast.List | ast.Set | ast.Tuple))


@cache
def imports(path: Path, *, for_types: bool = True) -> tuple[str, ...]:
    """Every module that a file may import, as dotted names; of `from a import b` both a and a.b.

    `for_types=False` leaves out what stands under `if TYPE_CHECKING`, which never runs.
    """
    unused = {
        id(inner)
        for node in nodes(path)
        if not for_types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: list[str] = []
    for node in nodes(path):
        if id(node) in unused:
            continue
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)} has a relative import"
            assert node.module
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(found)


@cache
def module_file(name: str) -> Path | None:
    """The file of a module of ours."""
    for root in (ROOT, ROOT / "client"):
        plain = root / Path(*name.split("."))
        for path in (plain.with_suffix(".py"), plain / "__init__.py"):
            if path.is_file():
                return path
    return None


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


@pytest.mark.parametrize(
    ("folder", "other"), [("api", "pages"), ("pages", "api"), ("reads", "api"), ("reads", "pages")]
)
def test_rest_and_pages_share_what_lies_below_both(folder: str, other: str) -> None:
    files = sources(f"services/gateway/{folder}")

    assert files
    assert [
        f"{relative(path)} imports {name}"
        for path in files
        for name in imports(path)
        if f"{name}.".startswith(f"services.gateway.{other}.")
    ] == []


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


def test_the_client_takes_only_words_and_experiments_from_the_services() -> None:
    found = {
        name
        for path in sources("client")
        for node in tree(path).body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("services")
        for name in [f"{node.module}.{alias.name}" for alias in node.names]
    }

    assert found
    taken = ("services.words", "services.experiments")
    assert sorted(name for name in found - {"services.__version__"} if not name.startswith(taken)) == []


def test_the_clients_wheel_has_what_its_copy_of_the_services_imports() -> None:
    (shared,) = (
        ast.literal_eval(node.value)
        for node in tree(ROOT / "client/hatch_build.py").body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_SHARED"
    )
    copied = [path for name in shared for path in (*sources(f"services/{name}"), ROOT / "services" / name)]
    found = {
        imported.split(".")[1]
        for path in copied
        if path.is_file()
        for imported in imports(path)
        if imported.startswith("services.") and module_file(imported) is not None
    }

    assert "words" in found
    assert found <= {name.removesuffix(".py") for name in shared}


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


@pytest.mark.parametrize("module", ["catalogue", "lm_eval.suite", "providers.openai.chat"])
def test_what_the_parity_check_runs_needs_neither_bus_nor_scorers(module: str) -> None:
    """Its environment has lm_eval, and of ours only what is asked there."""
    for imported, path in reached(f"services.evaluator.{module}"):
        assert imported.split(".")[0] not in ("grpc", "nats", "re2"), f"{imported} through {relative(path)}"


def test_only_the_contract_and_the_rights_name_nats_subjects() -> None:
    def texts(path: Path) -> Iterator[str]:
        documentation = {
            id(node.body[0].value)
            for node in nodes(path)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)

    found = {
        relative(path): sorted({text for text in texts(path) if SUBJECT.search(text)}) for path in sources("services")
    }

    assert found.pop("services/bus/contract.py")
    assert found.pop("services/bus/rights.py")
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


def test_run_packages_are_the_same_versions_in_all_locks() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"(?m)^[\w.-]+==\S+", (ROOT / lock).read_text()))

    run, image, dev = (pins(lock) for lock in LOCKS)

    assert run < image < dev


def test_the_models_packages_are_pinned_without_addresses() -> None:
    lines = [line for line in (ROOT / "requirements/model.txt").read_text().splitlines() if line[0] != "#"]

    assert "torch==2.13.0" in lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


NPM_LOCKS = (
    "package-lock.json",
    "tests/chart/custom_resources/package-lock.json",
    "tests/e2e/oidc_js/package-lock.json",
)


@pytest.mark.parametrize("lock", NPM_LOCKS)
def test_an_npm_lock_has_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    packages = json.loads(text)["packages"]
    fetched = {name: package for name, package in packages.items() if name}

    assert fetched
    assert [name for name, package in fetched.items() if "integrity" not in package or "resolved" in package] == []
    assert "://" not in text


OTHER_WORDS = {
    # The words are another product's, and are read or written there alone.
    "services/gateway/openai/objects.py",
    "services/evaluator/lm_eval/configuration.py",
}


@cache
def protos() -> tuple[frozenset[str], frozenset[str]]:
    """(names of enums, names of their values) of touchstone.v1."""
    enums: list[EnumDescriptor] = []

    def of_message(message: Descriptor) -> None:
        enums.extend(message.enum_types)
        for inner in message.nested_types:
            of_message(inner)

    for path in sorted((ROOT / "protos/touchstone/v1").glob("*.proto")):
        file = import_module(f"touchstone.v1.{path.stem}_pb2").DESCRIPTOR
        enums += file.enum_types_by_name.values()
        for message in file.message_types_by_name.values():
            of_message(message)
    return frozenset(enum.name for enum in enums), frozenset(value.name for enum in enums for value in enum.values)


def is_value(node: ast.AST | None) -> bool:
    """Whether an expression is a value of an enum, alone or first in a tuple."""
    if isinstance(node, ast.Tuple):
        return any(map(is_value, node.elts))
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in protos()[1]


def is_word(node: ast.AST | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(map(is_word, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(node.value)


def maps_an_enum(node: ast.AST) -> bool:
    """Whether an expression has words for values of an enum, or asks protobuf for their names."""
    if isinstance(node, ast.Dict):
        pairs = list(zip(node.keys, node.values, strict=True))
        # One value with a name of its own is a parameter of a query.
        return sum((is_value(a) and is_word(b)) or (is_word(a) and is_value(b)) for a, b in pairs) > 1
    if isinstance(node, ast.IfExp):
        return is_word(node.body) and is_word(node.orelse) and any(map(is_value, ast.walk(node.test)))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("Name", "Value", "items")
    ):
        enum = node.func.value
        return (enum.attr if isinstance(enum, ast.Attribute) else getattr(enum, "id", "")) in protos()[0]
    return False


def test_only_one_folder_has_words_for_enums() -> None:
    found = {
        relative(path): [ast.unparse(node)[:80] for node in nodes(path) if maps_an_enum(node)]
        for folder in ("services", "client", "web")
        for path in sources(folder)
    }
    homes = {path: maps for path, maps in found.items() if path.startswith("services/words/")}

    assert any(homes.values())
    assert {path for path in OTHER_WORDS if not found[path]} == set()
    assert {path: maps for path, maps in found.items() if maps and path not in OTHER_WORDS | set(homes)} == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"low": job_pb2.PRIORITY_LOW, "high": job_pb2.PRIORITY_HIGH}',
        '{PRIORITY_LOW: "low", PRIORITY_HIGH: "high"}',
        '{Job.STATE_FAILED: ("failed", 1), Job.STATE_CANCELLED: ("cancelled", 2)}',
        '"failed" if job.state == job_pb2.Job.STATE_FAILED else "cancelled"',
        "suite_pb2.Mode.Name(mode).lower()",
        "{name: number for name, number in Verdict.items()}",
    ],
)
def test_words_for_enums_are_seen(text: str) -> None:
    assert any(maps_an_enum(node) for node in ast.walk(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        '{"done": job_pb2.Job.STATE_COMPLETED, "job_id": job.job_id}',
        "job.state == job_pb2.Job.STATE_FAILED",
        '{"low": 1, "high": 2}',
        "counts.items()",
    ],
)
def test_what_has_no_words_for_enums_passes(text: str) -> None:
    assert not any(maps_an_enum(node) for node in ast.walk(ast.parse(text)))


JOB_FIELDS = {**PARAMETERS, **ALL, **OPTIONS}
MAKE_JOBS = (
    "services/gateway/api/jobs",
    "services/gateway/api/dataset_runs",
    "services/gateway/api/operations/schedules",
    "services/gateway/fields/scoring",
)
MAKE_ARGUMENTS = (
    *(f"client/touchstone_client/command/arguments/{name}" for name in ("sampling", "scoring", "work")),
    *(f"client/touchstone_client/command/running/{name}" for name in ("rerun", "rescore", "run")),
)


def constants(node: ast.AST | None) -> list[object]:
    listed = [*node.keys, *node.values] if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return [one.value for one in listed if isinstance(one, ast.Constant)]


def declares_again(node: ast.AST) -> list[str]:
    """Fields of a job that an expression declares: members of a request with a check, arguments of the command line."""
    if isinstance(node, ast.Dict):
        checks = ("integer", "number", "one_of", "boolean", "list_of", "texts")
        return [
            key.value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value in JOB_FIELDS and isinstance(value, ast.Call) and value.args
            if ast.unparse(value.args[0]).startswith(tuple(f"{check}(" for check in checks))
        ]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("add_argument", "add")):
        flags = {flag for field in JOB_FIELDS.values() for flag in field.flags}
        return [flag.value for flag in node.args if isinstance(flag, ast.Constant) and flag.value in flags]
    return []


def test_a_field_of_a_job_is_declared_once() -> None:
    found = {
        relative(path): [again for node in nodes(path) for again in declares_again(node)]
        for path in sources("services") + sources("client")
        if relative(path).startswith(MAKE_JOBS + MAKE_ARGUMENTS)
    }

    assert len(found) > 15
    assert {path: again for path, again in found.items() if again} == {}


def test_a_field_of_a_job_is_described_once() -> None:
    words = {text for field in JOB_FIELDS.values() for text in (field.about, field.help)}
    found = {
        relative(path): [node.value for node in nodes(path) if isinstance(node, ast.Constant) and node.value in words]
        for path in sources("services") + sources("client")
    }

    assert {path for path, said in found.items() if said} == {
        "services/words/job_options.py",
        "services/words/sampling.py",
        "services/words/scorers.py",
    }


@pytest.mark.parametrize("names", [{*PARAMETERS, *BY_REST_NAME}, {*OPTIONS}], ids=["sampling", "scoring"])
def test_parameters_are_listed_once(names: set[str]) -> None:
    """Providers have the names of protocols. Elsewhere, what is about one or two parameters names those."""
    found = {
        relative(path): max((len(names & {*map(str, constants(node))}) for node in containers(path)), default=0)
        for path in sources("services") + sources("client")
        if not relative(path).startswith("services/evaluator/providers/")
    }

    assert {path: count for path, count in found.items() if count > 3} == {}


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ('{"limit": Field(integer(1, 9), about="Most items.")}', ["limit"]),
        ('{"mode": option("mode"), "name": Field(text(9))}', []),
        ('parser.add_argument("--shots", type=int)', ["--shots"]),
        ('parser.add_argument("--format")', []),
    ],
)
def test_a_second_declaration_is_seen(text: str, again: list[str]) -> None:
    assert [one for node in ast.walk(ast.parse(text)) for one in declares_again(node)] == again
