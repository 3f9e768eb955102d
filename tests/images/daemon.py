"""A Docker daemon of the test's own, in namespaces: its bridges, rules and mounts are there alone and end with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.images.building import APART, run

_START_S = 60.0
_CGROUP = re.compile(r"touchstone-(\d+)")
_CGROUPS = Path("/sys/fs/cgroup")
_INSIDE = """
ip link set lo up
mount -t tmpfs tmpfs /run
test ! -d /etc/docker || mount -t tmpfs tmpfs /etc/docker
exec dockerd "$@"
"""


class Daemon:
    """Started and ended as a context. Its data are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._host = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Daemon:
        _remove_cgroups(lambda pid: not os.path.exists(f"/proc/{pid}"))
        self._folder.mkdir()
        flags = {
            "host": self._host,
            "data-root": f"{self._folder}/data",
            "exec-root": f"{self._folder}/exec",
            "pidfile": f"{self._folder}/pid",
            "cgroup-parent": f"/touchstone-{os.getpid()}",
        }
        command = (*APART, "--net", "sh", "-c", _INSIDE, "sh", *(f"--{name}={value}" for name, value in flags.items()))
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            self._until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._end()

    def docker(self, *arguments: str) -> str:
        return run("docker", "--host", self._host, *arguments)

    def compose(self, folder: Path, *arguments: str) -> str:
        """Runs compose in a folder: the command, or Docker's plug-in of that name."""
        command = ("docker-compose",) if shutil.which("docker-compose") else ("docker", "compose")
        return run("env", "--chdir", str(folder), f"DOCKER_HOST={self._host}", *command, *arguments)

    def _until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_S
        while subprocess.run(["docker", "--host", self._host, "version"], capture_output=True).returncode:
            log = (self._folder / "log").read_text()[-3000:]
            assert self._process.poll() is None, log
            assert time.monotonic() < deadline, log
            time.sleep(0.3)

    def _end(self) -> None:
        assert self._process is not None
        # With the first process of its namespace, every other one in it ends: containers, too.
        self._process.kill()
        self._process.wait(timeout=60)
        _remove_cgroups(lambda pid: pid == os.getpid())


def _remove_cgroups(of: Callable[[int], bool]) -> None:
    """Removes the empty control groups that the daemons of tests with these pids leave behind."""
    for top in {*_CGROUPS.glob("touchstone-*"), *_CGROUPS.glob("*/touchstone-*")}:
        if (found := _CGROUP.fullmatch(top.name)) and of(int(found[1])):
            for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
                _remove(folder)
            _remove(top)


def _remove(group: Path) -> None:
    # The kernel may need a moment until the last process of it is gone.
    deadline = time.monotonic() + 10
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
