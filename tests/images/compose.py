"""deploy/compose as its documentation says, and what containers say of themselves from inside."""

from __future__ import annotations

import csv
import json
import re
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.images.building import run
from tests.images.daemon import Daemon

SERVICES = ("nats", "results", "scheduler", "evaluator", "gateway")
MODELS = ("majority", "random", "bag-of-words")
HEALTHY_S = 240.0
ENDED = "Exited (0)"
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
given = [place for _, place, *_ in mounts if place.startswith("/etc/touchstone")]
print(json.dumps({
    "processes": [status(pid) for pid in pids],
    "root": next(options for _, place, _, options, *_ in mounts if place == "/").split(","),
    "given": {place: options.split(",") for _, place, _, options, *_ in mounts if place in given},
    "writes": {folder: refused(folder) for folder in ("/", "/etc", "/usr", "/opt/touchstone/app", "/tmp")},
    "packages": sorted(path.name for path in pathlib.Path("/opt/touchstone/venv/bin").iterdir()),
    "opt": [path.name for path in pathlib.Path("/opt").iterdir() if any(path.iterdir())],
    "scripts": sorted(os.listdir("/opt/touchstone/app/web/static/vendor")),
}))
"""


class Compose:
    """The folder of compose.yml, and a user's token."""

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.daemon, self.folder, self.token = daemon, folder, ""

    def __call__(self, *arguments: str) -> str:
        return self.daemon.compose(self.folder, *arguments)

    def make_env(self) -> None:
        shutil.copy(self.folder / ".env.example", self.folder / ".env")
        for name in ("TOUCHSTONE_SERVICE_TOKEN", "NATS_TOKEN"):
            self.set(name, run("openssl", "rand", "-hex", "32").strip())

    def set(self, name: str, value: str) -> None:
        run("sed", "-i", f"s/^{name}=.*/{name}={value}/", str(self.folder / ".env"))

    def up(self, services: Collection[str] = SERVICES, ending: Collection[str] = ()) -> None:
        """Starts everything and waits until these services are healthy, those of `ending` have done their work, and
        no other container is there."""
        began = time.monotonic()
        self("up", "-d")
        while True:
            found = self.daemon.docker("ps", "--all", "--format", "{{.Names}} {{.Status}}").splitlines()
            # As compose names them: by project, service and number.
            states = {re.split("[-_]", line.split()[0])[1]: line.partition(" ")[2] for line in found}
            done = {name for name in states if (ENDED if name in ending else "(healthy)") in states[name]}
            if len(found) == len(states) and done == {*services, *ending} == set(states):
                print(f"Healthy after {time.monotonic() - began:.0f} s")
                return
            assert time.monotonic() - began < HEALTHY_S, f"{found}\n{self('logs', '--tail=50')}"
            time.sleep(1)

    def log_in(self) -> None:
        """Makes a user's token."""
        said = self("exec", "-T", "gateway", "touchstone", "token", "create", "--user", "ann", "--role", "admin")
        self.token = said.splitlines()[0]

    def touchstone(self, *arguments: str) -> str:
        return self("exec", "-T", "-e", f"TOUCHSTONE_TOKEN={self.token}", "gateway", "touchstone", *arguments)

    def python(self, service: str, script: str, *arguments: str) -> Any:
        """What the script prints in the service's container, as JSON."""
        return json.loads(self("exec", "-T", service, "python", "-c", script, *arguments))

    def run_demo(self) -> None:
        began = time.monotonic()
        models = [word for model in MODELS for word in ("--model", model)]
        said = self.touchstone("run", "--suite", "demo", "--endpoint", "baseline", *models)
        print(f"The demo took {time.monotonic() - began:.0f} s")
        assert len(re.findall(r"(?m)^all over items  score .*  1,600$", said)) == len(MODELS)
        assert set(self.board()) == {*MODELS}

    def board(self) -> dict[str, str]:
        """Scores of the demo by model."""
        rows = csv.DictReader(self.touchstone("leaderboard", "--suite", "demo", "--format", "csv").splitlines())
        return {row["model"]: row["score"] for row in rows}

    def check_rights(self, services: Collection[str] = SERVICES) -> None:
        for service in services:
            _check(self.python(service, LOOK))

    def down(self) -> None:
        """Nothing stays."""
        self("down", "--volumes")
        assert self.daemon.docker("ps", "--all", "--quiet") == ""
        assert self.daemon.docker("volume", "ls", "--quiet") == ""
        networks = self.daemon.docker("network", "ls", "--format", "{{.Name}}").split()
        assert set(networks) == {"bridge", "host", "none"}


def _check(seen: dict[str, Any]) -> None:
    assert len(seen["processes"]) > 1
    for process in seen["processes"]:
        assert set(process["Uid"]) == set(process["Gid"]) == {"10001"}
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(process[capabilities][0], 16) == 0, capabilities
        assert process["NoNewPrivs"] == ["1"]
    assert "ro" in seen["root"]
    assert all("ro" in options for options in seen["given"].values()), seen["given"]
    assert seen["writes"].pop("/tmp") == "written"
    assert set(seen["writes"].values()) == {"Read-only file system"}
    assert "touchstone" in seen["packages"]
    assert not {"pip", "pip3", "pytest", "mypy", "ruff"} & set(seen["packages"])
    # Of what a build mounts, empty folders stay.
    assert seen["opt"] == ["touchstone"]
    assert seen["scripts"] == ["htmx.LICENSE", "htmx.min.js"]
