"""The images, and the default profile of compose: from nothing to a completed demo, and down."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.images.building import Builder, copy_tree, run
from tests.images.daemon import Daemon

pytestmark = pytest.mark.images

TOOLS = ("buildah", "docker", "dockerd", "git", "ip", "mmdebstrap", "openssl", "setpriv", "unshare")
IMAGES = ("touchstone", "touchstone-gpu")
SERVICES = ("nats", "results", "scheduler", "evaluator", "gateway")
MODELS = ("majority", "random", "bag-of-words")
HEALTHY_S = 240.0
LOOK = """
import json, os, pathlib
def status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
def refused(folder):
    try:
        pathlib.Path(folder, "written").write_text("")
    except OSError as error:
        return error.strerror
    return "written"
pids = [name for name in os.listdir("/proc") if name.isdigit()]
mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
print(json.dumps({
    "processes": [status(pid) for pid in pids],
    "root": next(options for _, place, _, options, *_ in mounts if place == "/").split(","),
    "writes": {folder: refused(folder) for folder in ("/", "/etc", "/usr", "/opt/touchstone/app", "/tmp")},
    "packages": sorted(path.name for path in pathlib.Path("/opt/touchstone/venv/bin").iterdir()),
    "opt": [path.name for path in pathlib.Path("/opt").iterdir() if any(path.iterdir())],
    "scripts": sorted(os.listdir("/opt/touchstone/app/web/static/vendor")),
}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(
            f"Building and running images needs root and {', '.join(TOOLS)}; missing: {', '.join(missing) or 'root'}. "
            "On Debian: apt install buildah docker.io docker-compose mmdebstrap"
        )
    made = tmp_path_factory.mktemp("images")
    yield made
    # The images take gigabytes.
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def tree(folder: Path) -> Path:
    return copy_tree(folder)


@pytest.fixture(scope="module")
def archives(folder: Path, tree: Path) -> dict[str, Path]:
    builder = Builder(folder)
    builder.make_base()
    return {image: builder.build(image, tree) for image in IMAGES}


@pytest.fixture(scope="module")
def daemon(folder: Path, archives: dict[str, Path]) -> Iterator[Daemon]:
    with Daemon(folder / "docker") as made:
        for archive in archives.values():
            made.docker("load", "--input", str(archive))
            archive.unlink()
        yield made


def test_images_are_made_for_a_user_without_rights(daemon: Daemon) -> None:
    for image in IMAGES:
        (found,) = json.loads(daemon.docker("image", "inspect", image))
        assert found["Config"]["User"] == "10001:10001"
        assert not found["Config"]["Entrypoint"]
    started = ("run", "--rm", "--read-only", "--cap-drop=ALL", "touchstone-gpu", "touchstone", "--version")
    assert daemon.docker(*started).startswith("touchstone ")


def test_the_demo_completes_and_down_leaves_nothing(daemon: Daemon, tree: Path) -> None:
    compose = Compose(daemon, tree / "deploy/compose")
    compose.make_env()
    compose.up()
    token = compose("exec", "-T", "gateway", "touchstone", "token", "create", "--user", "ann", "--role", "admin")
    compose.token = token.splitlines()[0]

    began = time.monotonic()
    models = [word for model in MODELS for word in ("--model", model)]
    said = compose.touchstone("run", "--suite", "demo", "--endpoint", "baseline", *models)
    print(f"The demo took {time.monotonic() - began:.0f} s")
    assert len(re.findall(r"(?m)^all over items  score .*  1,600$", said)) == len(MODELS)
    board = compose.board()
    assert set(board) == {*MODELS}

    for service in SERVICES:
        check_rights(json.loads(compose("exec", "-T", service, "python", "-c", LOOK)))

    backup = compose("exec", "-T", "results", "touchstone", "backup").strip()
    compose("down")
    compose("run", "--rm", "--no-deps", "-T", "results", "touchstone", "restore", backup)
    compose.up()
    assert compose.board() == board

    compose("down", "--volumes")
    assert daemon.docker("ps", "--all", "--quiet") == ""
    assert daemon.docker("volume", "ls", "--quiet") == ""
    networks = daemon.docker("network", "ls", "--format", "{{.Name}}").split()
    assert set(networks) == {"bridge", "host", "none"}


class Compose:
    """The folder of compose.yml, and a user's token."""

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.daemon, self.folder, self.token = daemon, folder, ""

    def __call__(self, *arguments: str) -> str:
        return self.daemon.compose(self.folder, *arguments)

    def make_env(self) -> None:
        """As the documentation says."""
        shutil.copy(self.folder / ".env.example", self.folder / ".env")
        for name in ("TOUCHSTONE_SERVICE_TOKEN", "NATS_TOKEN"):
            run("sed", "-i", f"s/^{name}=/&{run('openssl', 'rand', '-hex', '32').strip()}/", str(self.folder / ".env"))

    def up(self) -> None:
        """Starts everything and waits until it is healthy."""
        began = time.monotonic()
        self("up", "-d")
        while True:
            states = self.daemon.docker("ps", "--all", "--format", "{{.Names}} {{.Status}}").splitlines()
            if len(states) == len(SERVICES) and all("(healthy)" in state for state in states):
                print(f"Healthy after {time.monotonic() - began:.0f} s")
                return
            assert time.monotonic() - began < HEALTHY_S, f"{states}\n{self('logs', '--tail=50')}"
            time.sleep(1)

    def touchstone(self, *arguments: str) -> str:
        return self("exec", "-T", "-e", f"TOUCHSTONE_TOKEN={self.token}", "gateway", "touchstone", *arguments)

    def board(self) -> dict[str, str]:
        """Scores of the demo by model."""
        rows = csv.DictReader(self.touchstone("leaderboard", "--suite", "demo", "--format", "csv").splitlines())
        return {row["model"]: row["score"] for row in rows}


def check_rights(seen: dict[str, Any]) -> None:
    """What a container says of itself from inside."""
    assert len(seen["processes"]) > 1
    for process in seen["processes"]:
        assert set(process["Uid"]) == set(process["Gid"]) == {"10001"}
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(process[capabilities][0], 16) == 0, capabilities
        assert process["NoNewPrivs"] == ["1"]
    assert "ro" in seen["root"]
    assert seen["writes"].pop("/tmp") == "written"
    assert set(seen["writes"].values()) == {"Read-only file system"}
    assert "touchstone" in seen["packages"]
    assert not {"pip", "pip3", "pytest", "mypy", "ruff"} & set(seen["packages"])
    # Of what a build mounts, empty folders stay.
    assert seen["opt"] == ["touchstone"]
    assert seen["scripts"] == ["htmx.LICENSE", "htmx.min.js"]
