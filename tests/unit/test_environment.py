"""Variables: every one that is read is documented as it is read, and a value that cannot be ends with one sentence."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.local.settings import LaunchError
from deploy.local.settings import Settings as Launcher
from services import bus, environment, rpc
from services.bus.login import new_seed
from services.errors import InvalidRequestError
from services.evaluator.settings import Settings as Evaluator
from services.gateway.settings import Settings as Gateway
from services.results.settings import Settings as Results
from services.scheduler.settings import Settings as Scheduler
from services.telemetry import logs, serving

ROOT = Path(__file__).parents[2]
READERS = (
    "text",
    "whole",
    "number",
    "choice",
    "switch",
    "listen",
    "addresses",
    "own_host",
    "url",
    "folder",
    "file",
    "writable",
)
FROM_ENVIRONMENT: dict[str, Callable[[], object]] = {
    "evaluator": Evaluator.from_env,
    "gateway": Gateway.from_env,
    "launcher": Launcher.from_env,
    "results": Results.from_env,
    "scheduler": Scheduler.from_env,
    "tls": rpc.Tls.from_env,
    "nats": bus.Settings.from_env,
    "metrics": serving.Settings.from_env,
    "logs": logs.formatter,
    "room": lambda: bus.Room.from_env(None, ""),
}
SHARED: tuple[Callable[[], object], ...] = (
    rpc.Settings.from_env,
    rpc.Tls.from_env,
    bus.Settings.from_env,
    serving.Settings.from_env,
    logs.formatter,
)
SECTIONS: dict[str, tuple[Callable[[], object], ...]] = {
    "Launcher": (Launcher.from_env,),
    "All services": SHARED,
    "Gateway": (Gateway.from_env, FROM_ENVIRONMENT["room"]),
    "Scheduler": (Scheduler.from_env, FROM_ENVIRONMENT["room"]),
    "Evaluator": (Evaluator.from_env,),
    "Results service": (Results.from_env, FROM_ENVIRONMENT["room"]),
}
"""The sections of the operators' document, and what the process of each reads."""
IMPOSSIBLE = {
    "whole": ("abc", "nan", "-1", "1e999", "1.5", "0x10", "1_000", "²", "9" * 40),
    "number": ("abc", "nan", "-1", "1e999", "inf", "1e12"),
    "choice": ("abc", "LOCAL"),
    "switch": ("abc", "2", "true"),
    "listen": ("abc", "127.0.0.1", "127.0.0.1:99999", ":8051", "127.0.0.1:-1", "a b:1", "127.0.0.1:"),
    "addresses": ("abc", "127.0.0.1:0", "127.0.0.1:99999", "http://a:1", "a:1,,b:2"),
    "own_host": ("no.such.host.invalid", "192.0.2.1", "a b", "127.0.0.1:80", "x" * 100),
    "url": ("abc", "nats://", "http://", "nats://:4222", "nats://a:99999", "ftp://a"),
    "folder": ("/no/such/folder", "/etc/hostname", "~nobody-here/x"),
    "file": ("/no/such/file", "/"),
}


@dataclass(frozen=True)
class Read:
    """One call of a reader."""

    by: str
    kind: str
    default: object
    least: float | None
    most: float | None


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no launcher keeps its state."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Read]]:
    """What every settings module reads of an empty environment, by variable."""
    return _reads(monkeypatch)


def _reads(
    monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, Callable[[], object]] = FROM_ENVIRONMENT
) -> dict[str, list[Read]]:
    found: dict[str, list[Read]] = {}
    for name in [name for name in os.environ if name.startswith("TOUCHSTONE_")]:
        monkeypatch.delenv(name, raising=False)
    inside: list[str] = []
    by: list[str] = []

    def recorded(kind: str, reader: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(reader)

        def read(*given: Any, **named: Any) -> Any:
            bound = signature.bind(*given, **named)
            bound.apply_defaults()
            values = bound.arguments
            if not inside:
                made = Read(by[-1], kind, values.get("default"), values.get("least"), values.get("most"))
                found.setdefault(values["name"], []).append(made)
            # Readers use each other.
            inside.append(kind)
            try:
                return reader(*given, **named)
            finally:
                inside.pop()

        return read

    with pytest.MonkeyPatch.context() as patched:
        for kind in READERS:
            patched.setattr(environment, kind, recorded(kind, getattr(environment, kind)))
        for service, read in settings.items():
            by.append(service)
            read()
    return found


def _documented() -> dict[str, tuple[str, str]]:
    """Default and range by variable, as the tables of the operators' document have them."""
    found: dict[str, tuple[str, str]] = {}
    for line in (ROOT / "docs/operations.md").read_text().splitlines():
        if line.startswith("| `TOUCHSTONE_"):
            cells = [cell.strip() for cell in line.split("|")[1:]]
            [name] = re.findall(r"`(TOUCHSTONE_\w+)`", cells[0])
            assert name not in found, f"{name} has two rows"
            found[name] = cells[1], cells[2]
    return found


def _plain(value: object) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:g}"
    return f"{int(value):,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def test_every_variable_is_documented_with_its_default_and_range(reads: Mapping[str, list[Read]]) -> None:
    documented = _documented()
    assert set(reads) - set(documented) == set(), "are read and not documented"
    assert set(documented) - set(reads) == set(), "are documented and read by nobody"
    wrong = []
    for name, (default, span) in documented.items():
        ranges = {f"{_plain(read.least)}–{_plain(read.most)}" for read in reads[name] if read.least is not None}
        # Inside the state directory, whose path is not the same everywhere.
        defaults = {_plain(read.default) for read in reads[name] if "/" not in str(read.default)} - {"None", ""}
        if ranges and span not in ranges:
            wrong.append(f"{name} may be {' or '.join(sorted(ranges))}, not {span!r}")
        if len(defaults) == 1 and re.sub(r"[`]", "", default) not in defaults and not default.startswith("free"):
            wrong.append(f"{name} is {defaults} by default, not {default!r}")
    assert wrong == []


def test_every_variable_stands_in_the_section_of_the_process_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_by(section: str) -> set[str]:
        return {name for each in SECTIONS[section] for name in _reads(monkeypatch, {section: each})}

    everywhere = read_by("All services")
    readers: dict[str, set[str]] = {name: {"All services"} for name in everywhere}
    for service in ("Gateway", "Scheduler", "Evaluator", "Results service"):
        for name in read_by(service) - everywhere | {"TOUCHSTONE_STATE_DIR"} & read_by(service):
            readers.setdefault(name, set()).add(service)
    # The launcher passes on what services read.
    for name in read_by("Launcher"):
        readers.setdefault(name, {"Launcher"})

    text = (ROOT / "docs/operations.md").read_text()
    parts = re.split(r"(?m)^##+ (.+)$", text)
    documented = {
        name: heading
        for heading, part in zip(parts[1::2], parts[2::2], strict=True)
        for name in re.findall(r"(?m)^\| `(TOUCHSTONE_\w+)`", part)
    }
    assert documented == {
        name: next(iter(who)) if len(who) == 1 else "Several services" for name, who in readers.items()
    }


def test_every_variable_in_the_code_is_documented_and_the_other_way_round() -> None:
    def names(files: list[Path]) -> set[str]:
        return {name for path in files for name in re.findall(r"TOUCHSTONE_[A-Z_]*[A-Z]", path.read_text())}

    code = [p for folder in ("services", "deploy", "client", "web") for p in (ROOT / folder).rglob("*.py")]
    tests = [p for folder in ("tests", "benchmarks") for p in (ROOT / folder).rglob("*.py")]
    documents = [ROOT / "README.md", ROOT / "tests/README.md", *(ROOT / "docs").glob("*.md")]
    inside = {"TOUCHSTONE_ENGINE"}  # Between the evaluator and the keeper of an engine.
    assert names(code) - names(documents) - inside == set()
    assert names(documents) - names(code) - names(tests) == set()


def test_nothing_reads_a_variable_but_through_a_reader() -> None:
    found = []
    for path in sorted(p for folder in ("services", "deploy") for p in (ROOT / folder).rglob("*.py")):
        if path.name == "environment.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"environ\b[^#]*(\.get\(|\[)\s*f?\"TOUCHSTONE_", line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert found == []


def test_a_value_that_cannot_be_ends_with_one_sentence(
    reads: Mapping[str, list[Read]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_SERVICE_TOKEN", "s")
    accepted = []
    for name, known in sorted(reads.items()):
        kinds = {read.kind for read in known} & set(IMPOSSIBLE)
        for value in {value for kind in kinds for value in IMPOSSIBLE[kind]}:
            monkeypatch.setenv(name, value)
            refused = {by: _refusal(FROM_ENVIRONMENT[by]) for by in {read.by for read in known}}
            monkeypatch.delenv(name)
            accepted += [f"{name}={value} by {by}" for by, sentence in refused.items() if not sentence]
            for sentence in filter(None, refused.values()):
                assert re.match(rf"{name} (must|names)\b.*\.$", sentence), sentence
                assert "\n" not in sentence
    assert accepted == []


def _refusal(read: Callable[[], object]) -> str:
    try:
        read()
    except (InvalidRequestError, LaunchError) as error:
        return str(error)
    return ""


def test_each_end_of_a_range_is_allowed_and_what_lies_beyond_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, known in sorted(_reads(monkeypatch).items()):
        for read in known:
            if read.least is None or read.most is None:
                continue
            reader = getattr(environment, read.kind)
            for value in (read.least, read.most, read.default):
                assert reader(name, read.default, read.least, read.most, {name: str(value)}) == value
            for value in (read.least - 1, read.most + 1):
                with pytest.raises(InvalidRequestError, match=f"{name} must be a (whole )?number.* between .* and "):
                    reader(name, read.default, read.least, read.most, {name: str(value)})


@pytest.mark.parametrize("empty", ["", " "])
def test_a_variable_that_is_empty_counts_as_not_set(
    reads: Mapping[str, list[Read]], monkeypatch: pytest.MonkeyPatch, empty: str
) -> None:
    usual = Gateway.from_env(), Scheduler.from_env().limits
    for name in reads:
        monkeypatch.setenv(name, empty)
    assert (Gateway.from_env(), Scheduler.from_env().limits) == usual
    assert [found for found in map(_refusal, FROM_ENVIRONMENT.values()) if found] == []


def test_a_state_directory_must_be_one_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "var"):
        with pytest.raises(InvalidRequestError, match="TOUCHSTONE_STATE_DIR must name a folder that this user may"):
            environment.state_folder({"TOUCHSTONE_STATE_DIR": str(wrong)})
    later = tmp_path / "a" / "b"
    assert environment.state_folder({"TOUCHSTONE_STATE_DIR": str(later)}) == later
    assert not later.exists()


@pytest.mark.parametrize("value", ["\u0661\u0662", "1_000", "1e", ".", "0x10", "5 6", "infinity"])
def test_a_number_is_of_ascii_digits(value: str) -> None:
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_GRACE_S must be a number"):
        environment.number("TOUCHSTONE_GRACE_S", 1.0, 0.0, 1e9, {"TOUCHSTONE_GRACE_S": value})


@pytest.mark.parametrize(("value", "number"), [("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("+2", 2.0)])
def test_a_number_may_be_written_in_every_usual_way(value: str, number: float) -> None:
    assert environment.number("TOUCHSTONE_GRACE_S", 1.0, 0.0, 1e9, {"TOUCHSTONE_GRACE_S": value}) == number


def test_a_path_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_DATA_DIR must name a path"):
        environment.folder("TOUCHSTONE_DATA_DIR", "a mirror", {"TOUCHSTONE_DATA_DIR": "9" * 400})


def test_a_url_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", "http://user:secret@a:99999")
    with pytest.raises(InvalidRequestError) as refused:
        bus.Settings.from_env()
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("host1:8051, host2:8051", "host1:8051,host2:8051"),
        ("dns:///schedulers:8051", "dns:///schedulers:8051"),
        ("10.0.0.1:1,[::1]:2,dns:///c:3", "10.0.0.1:1,[::1]:2,dns:///c:3"),
    ],
)
def test_addresses_may_be_listed_by_ip_and_name(value: str, read: str) -> None:
    assert environment.addresses("TOUCHSTONE_SCHEDULER", "a:1", {"TOUCHSTONE_SCHEDULER": value}) == read


@pytest.mark.parametrize("value", ["host1:8051,", "host1", "dns:///", "dns://a:1", "ipv4:10.0.0.1:1", "a:0"])
def test_wrong_addresses_are_refused(value: str) -> None:
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_SCHEDULER must be host:port, such as a:1, or dns:///"):
        environment.addresses("TOUCHSTONE_SCHEDULER", "a:1", {"TOUCHSTONE_SCHEDULER": value})


def test_nodes_of_nats_share_one_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", "nats://secret@a:4222, nats://b:4222,nats://secret@c:4222")
    assert bus.Settings.from_env().secrets == ["secret"]
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", "nats://secret@a:4222,nats://other@b:4222")
    with pytest.raises(InvalidRequestError, match="the same token") as refused:
        bus.Settings.from_env()
    assert "secret" not in refused.value.message


def test_a_login_of_nats_is_complete_and_shows_no_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seed = new_seed()
    (tmp_path / "seed").write_text(f"{seed}\n")
    monkeypatch.setenv("TOUCHSTONE_NATS_NKEY_SEED_FILE", str(tmp_path / "seed"))
    settings = bus.Settings.from_env()
    assert settings.secrets == [settings.login.seed] == [seed]
    assert seed not in repr(settings)
    (tmp_path / "wrong").write_text(seed[:-4])
    for wrong in (seed, str(tmp_path), str(tmp_path / "wrong"), str(tmp_path / "none")):
        monkeypatch.setenv("TOUCHSTONE_NATS_NKEY_SEED_FILE", wrong)
        with pytest.raises(InvalidRequestError, match="must name a readable file with the seed") as refused:
            bus.Settings.from_env()
        assert seed[:-4] not in refused.value.message
    monkeypatch.setenv("TOUCHSTONE_NATS_NKEY_SEED_FILE", str(tmp_path / "seed"))
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", "nats://secret@a:4222")
    with pytest.raises(InvalidRequestError, match="Use one of them"):
        bus.Settings.from_env()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("CERT", "TOUCHSTONE_NATS_TLS_CERT is set but TOUCHSTONE_NATS_TLS_KEY is not"),
        ("KEY", "TOUCHSTONE_NATS_TLS_KEY is set but TOUCHSTONE_NATS_TLS_CERT is not"),
        ("CERT KEY", "TOUCHSTONE_NATS_TLS_CERT is set but TOUCHSTONE_NATS_TLS_CA is not"),
        ("CA", "TOUCHSTONE_NATS_TLS_CA names /no/such, which cannot be read"),
    ],
)
def test_tls_to_nats_is_complete(monkeypatch: pytest.MonkeyPatch, names: str, words: str) -> None:
    for name in names.split():
        monkeypatch.setenv(f"TOUCHSTONE_NATS_TLS_{name}", "/no/such")
    with pytest.raises(InvalidRequestError, match=words):
        bus.Settings.from_env()
