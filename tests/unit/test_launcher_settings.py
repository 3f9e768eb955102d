"""The launcher's settings, ports, programs and output, without processes."""

from __future__ import annotations

import io
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.local import stack
from deploy.local.demo import board_rows
from deploy.local.launcher import say_where
from deploy.local.ports import free_port, is_free
from deploy.local.settings import LaunchError, Settings
from deploy.local.terminal import BAR_WIDTH, Terminal, interval_bar, progress_bar, table


def test_every_port_is_free_and_different_by_default() -> None:
    settings = Settings.from_env({"TOUCHSTONE_EVALUATORS": "3"})
    ports = [
        settings.http_port,
        settings.nats_port,
        settings.nats_monitor_port,
        settings.scheduler_port,
        settings.results_port,
        *settings.evaluator_ports,
    ]

    assert settings.http_port == 8080
    assert len(ports) == len(set(ports)) == 8
    assert all(is_free(port) for port in ports[1:])


def test_ports_can_be_set() -> None:
    names = ("HTTP", "NATS", "NATS_MONITOR", "SCHEDULER", "RESULTS", "EVALUATOR")
    settings = Settings.from_env({f"TOUCHSTONE_{name}_PORT": str(7000 + at) for at, name in enumerate(names)})

    assert (settings.http_port, settings.nats_port, settings.nats_monitor_port) == (7000, 7001, 7002)
    assert (settings.scheduler_port, settings.results_port, settings.evaluator_ports) == (7003, 7004, (7005,))
    assert set(settings.fixed_ports.values()) == set(range(7000, 7006))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TOUCHSTONE_HTTP_PORT", "80a"),
        ("TOUCHSTONE_HTTP_PORT", "0"),
        ("TOUCHSTONE_NATS_PORT", "65536"),
        ("TOUCHSTONE_EVALUATORS", "-1"),
        ("TOUCHSTONE_ENDPOINTS", "/no/such/file.toml"),
        ("TOUCHSTONE_DATA_DIR", "/no/such/folder"),
    ],
)
def test_an_impossible_setting_is_named(variable: str, value: str) -> None:
    with pytest.raises(LaunchError, match=variable) as refused:
        Settings.from_env({variable: value})
    assert refused.value.code == 78


def said_of(monkeypatch: pytest.MonkeyPatch, taken: set[int], environ: dict[str, str]) -> str:
    monkeypatch.setattr("deploy.local.settings.take", lambda port: port not in taken)
    output = io.StringIO()
    settings = Settings.from_env(environ)
    say_where(Terminal(output), settings, environ)
    return output.getvalue().replace(str(settings.scheduler_port), "S").replace(str(settings.results_port), "R")


def test_where_the_usual_ports_are_taken_other_terminals_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    export = "In other terminals:\n  export TOUCHSTONE_SCHEDULER=127.0.0.1:S TOUCHSTONE_RESULTS=127.0.0.1:R\n"
    assert "export" not in said_of(monkeypatch, set(), {})
    assert f"\n8051 and 8052 are taken. {export}" in said_of(monkeypatch, {8051, 8052}, {})
    assert f"\n{export}" in said_of(monkeypatch, set(), {"TOUCHSTONE_SCHEDULER_PORT": "7003"})
    assert "\n8051 is taken. In other terminals:" in said_of(monkeypatch, {8051}, {})


def test_one_port_given_twice_is_refused() -> None:
    with pytest.raises(LaunchError, match="same port"):
        Settings.from_env({"TOUCHSTONE_HTTP_PORT": "7000", "TOUCHSTONE_NATS_PORT": "7000"})


def test_metrics_have_successive_ports_in_the_order_that_the_docs_say() -> None:
    environ = {"TOUCHSTONE_METRICS_PORT": "9464", "TOUCHSTONE_EVALUATORS": "2"}
    names = ["gateway", "scheduler", "results", "evaluator-1", "evaluator-2"]
    assert dict(Settings.from_env(environ).metrics_ports) == {name: 9464 + n for n, name in enumerate(names)}
    copied = Settings.from_env(environ | {"TOUCHSTONE_REPLICA_S": "30"})
    assert copied.metrics_ports["replica"] == 9469
    assert dict(Settings.from_env({"TOUCHSTONE_REPLICA_S": "30"}).metrics_ports) == {}


def test_free_ports_lie_outside_the_range_of_outgoing_connections() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if low < 22_000:
        pytest.skip("this machine hands out nearly every port to outgoing connections")

    assert all(not low <= free_port() <= high for _ in range(50))


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        assert not is_free(listener.getsockname()[1])


def nats(folder: Path, version: str) -> str:
    folder.mkdir(exist_ok=True)
    binary = folder / "nats-server"
    binary.write_text(f"#!/bin/sh\necho 'nats-server: {version}'\n")
    binary.chmod(0o755)
    return str(binary)


def test_a_recent_nats_server_on_path_is_taken(tmp_path: Path) -> None:
    binary = nats(tmp_path, "v2.12.0")

    assert stack.nats_binary(f"{tmp_path}{os.pathsep}/usr/bin") == binary


def test_an_old_nats_server_on_path_is_passed_over_for_the_installed_one(tmp_path: Path) -> None:
    old = nats(tmp_path, "v2.11.9")

    found = stack.nats_binary(f"{tmp_path}{os.pathsep}/usr/bin")

    assert found != old
    assert Path(found).name == "nats-server"


def test_a_live_block_is_redrawn_below_new_lines() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    terminal = Terminal(screen)
    terminal.live = True
    terminal.show(["one", "two"])
    terminal.say("between")

    assert screen.getvalue() == "one\ntwo\n" + "\x1b[1A\x1b[2K" * 2 + "between\none\ntwo\n"


def test_without_a_terminal_nothing_is_drawn_twice() -> None:
    output = io.StringIO()
    terminal = Terminal(output)
    terminal.show(["one"])
    terminal.say("line")

    assert output.getvalue() == "line\n"


def test_a_reader_that_went_away_does_not_stop_the_launcher() -> None:
    read, write = os.pipe()
    os.close(read)
    gone = os.fdopen(write, "w", buffering=1)
    terminal = Terminal(gone)

    terminal.say("into the void")

    with suppress(BrokenPipeError):
        gone.close()


@pytest.mark.parametrize(("share", "bar"), [(0, "░░░░"), (0.5, "██░░"), (0.125, "▌░░░"), (1, "████"), (7, "████")])
def test_progress_is_drawn_in_eighths(share: float, bar: str) -> None:
    assert progress_bar(share, 4) == bar


def test_an_interval_spans_its_bounds_on_the_unit_scale() -> None:
    bar = interval_bar(0.5, 1.0, 0.75)

    assert len(bar) == BAR_WIDTH
    assert (bar.index("├"), bar.index("●"), bar.index("┤")) == (16, 23, 31)
    assert bar[:16].strip() == ""


def test_a_baseline_beside_a_model_has_a_dash_for_its_rank() -> None:
    entries = [
        {"rank": 1, "model": "m", "score": 0.5, "ci95": [0.4, 0.6]},
        {"rank": None, "model": "majority", "score": 0.6, "ci95": [0.5, 0.7]},
        {"rank": None, "model": "unscored", "score": None, "ci95": None},
    ]
    assert [row[:2] for row in board_rows({"leaderboard": entries})] == [
        ("rank", "model"),
        ("1", "m"),
        ("–", "majority"),
    ]


def test_a_table_aligns_its_columns() -> None:
    assert table([("rank", "model"), ("1", "a"), ("10", "bcd")], right=frozenset({0})) == [
        "rank  model",
        "   1  a",
        "  10  bcd",
    ]
