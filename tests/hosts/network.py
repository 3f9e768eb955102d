"""Hosts as network namespaces on a bridge. Their links can be cut and can lose packets. Needs root and `ip`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

_NAME = re.compile(r"touchstone-(\d+)-\w+")
"""Of a namespace: it has the pid of the test that made it."""
_NFT = (
    "add table inet loss",
    "add chain inet loss in { type filter hook input priority 0; }",
    "add rule inet loss in iifname eth0 numgen random mod 100 < {percent} counter drop",
)


class NoNamespacesError(Exception):
    """This machine or this user cannot make network namespaces."""


class Network:
    """Hosts by name, each with an address, and this process's own host beside them. All of it is removed by `close`,
    and what an earlier test that was killed left behind is removed first."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """Raises NoNamespacesError."""
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise NoNamespacesError("Network namespaces need root, and `ip` of iproute2.")
        self.hosts = list(hosts)
        self._lan = self._space("lan")
        # 198.18.0.0/15 is for benchmarks: no network that this machine is in uses it.
        self._subnet = f"198.18.{os.getpid() % 256}"
        _remove(lambda pid: not os.path.exists(f"/proc/{pid}"))
        try:
            _ip("netns", "add", self._lan)
        except subprocess.CalledProcessError as error:
            raise NoNamespacesError(f"Network namespaces cannot be made: {error.stderr.strip()}") from error
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        self._in_lan("link", "add", "br0", "type", "bridge")
        self._in_lan("link", "set", "br0", "up")
        own = f"ts{os.getpid()}"
        _ip("link", "add", own, "type", "veth", "peer", "name", "test", "netns", self._lan)
        self._in_lan("link", "set", "test", "master", "br0", "up")
        _ip("addr", "add", f"{self._subnet}.254/24", "dev", own)
        _ip("link", "set", own, "up")
        for host in self.hosts:
            space = self._space(host)
            _ip("netns", "add", space)
            self._in_lan("link", "add", "name", host, "type", "veth", "peer", "name", "eth0", "netns", space)
            self._in_lan("link", "set", "dev", host, "master", "br0", "up")
            _ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                _ip("-n", space, "link", "set", link, "up")

    def address(self, host: str) -> str:
        return f"{self._subnet}.{1 + self.hosts.index(host)}"

    def inside(self, host: str) -> tuple[str, ...]:
        """What stands before a command that runs on the host. It ends when this process is gone."""
        return ("ip", "netns", "exec", self._space(host), "setpriv", "--pdeathsig", "KILL")

    def cut(self, host: str) -> None:
        """No packet reaches the host or leaves it."""
        self._in_lan("link", "set", "dev", host, "down")

    def heal(self, host: str) -> None:
        self._in_lan("link", "set", "dev", host, "up")

    @contextmanager
    def losing(self, host: str, percent: int) -> Iterator[None]:
        """Of the packets that come to the host, so many are lost."""
        inside = ("ip", "netns", "exec", self._space(host))
        end: tuple[str, ...]
        if shutil.which("nft"):
            for line in _NFT:
                _run(*inside, "nft", line.replace("{percent}", str(percent)))
            end = ("nft", "delete table inet loss")
        else:
            rule = ["INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random"]
            rule += ["--probability", str(percent / 100), "-j", "DROP"]
            _run(*inside, "iptables", "-A", *rule)
            end = ("iptables", "-D", *rule)
        try:
            yield
        finally:
            _run(*inside, *end)

    def close(self) -> None:
        _remove(lambda pid: pid == os.getpid())

    def _space(self, host: str) -> str:
        return f"touchstone-{os.getpid()}-{host}"

    def _in_lan(self, *arguments: str) -> None:
        _ip("-n", self._lan, *arguments)


def can_lose_packets() -> bool:
    return bool(shutil.which("nft") or shutil.which("iptables"))


def _remove(of: Callable[[int], bool]) -> None:
    """Removes the namespaces of the tests with these pids, and ends the processes in them."""
    for space in _ip("netns", "list").split():
        found = _NAME.fullmatch(space)
        if found is None or not of(int(found[1])):
            continue
        for pid in _ip("netns", "pids", space).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        # With the bridge's namespace, all links go.
        _ip("netns", "delete", space)


def _run(*command: str) -> str:
    """What it prints. Raises CalledProcessError."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)
