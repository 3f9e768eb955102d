"""The state directory: one launcher at a time, a record of its children, a secret, logs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import signal
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.local.logs import set_aside
from deploy.local.settings import LaunchError

LOG_LIMIT_BYTES = 10 * 1024 * 1024
REAP_TIMEOUT_S = 10.0
_OWN = (
    "backups", "children.json", "engines", "lock", "logs", "lost-in-streams", "nats", "nats-token", "nats-url",
    "nats.conf", "results", "service-token", "streams.json",
)  # fmt: skip
_SECRET = re.compile(r"[!-~]{16,}")
"""Printable and long enough."""


@dataclass(frozen=True)
class ProcessInfo:
    """What /proc says about a process. `started` is in clock ticks since boot, and with the pid identifies one
    process."""

    pid: int
    group: int
    started: int
    zombie: bool


def process_info(pid: int) -> ProcessInfo | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command's name is in parentheses and may hold anything, so count from the last one.
    fields = text.rpartition(")")[2].split()
    return ProcessInfo(pid, group=int(fields[2]), started=int(fields[19]), zombie=fields[0] in "ZX")


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used; 0 for one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class StateDir:
    """Exclusive use of a state directory, from creation until the process ends."""

    def __init__(self, path: Path) -> None:
        """Raises LaunchError when another launcher runs here or the directory cannot be written."""
        self.path = path
        try:
            (path / "logs").mkdir(parents=True, exist_ok=True)
            self._lock = (path / "lock").open("a+", errors="replace")
        except OSError as error:
            raise LaunchError(
                f"Cannot write to {error.filename or path}: {error.strerror}. Move it away if it should not be there, "
                "or set TOUCHSTONE_STATE_DIR."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            holder = self._lock.read().strip() or "unknown"
            self._lock.close()
            raise LaunchError(
                f"Another Touchstone is running on {path} (pid {holder}). Stop it, or set TOUCHSTONE_STATE_DIR to "
                "another folder."
            ) from None
        # On a full disk only the pid is missing from the message above.
        with suppress(OSError):
            self._lock.truncate(0)
            self._lock.write(str(os.getpid()))
            self._lock.flush()
        self._children: dict[str, ProcessInfo] = {}
        self._secrets: dict[str, str] = {}

    def close(self) -> None:
        # It also writes the pid if a full disk prevented that before.
        with suppress(OSError):
            self._lock.close()

    def log(self, name: str) -> Path:
        """The log of a process."""
        return self.path / "logs" / f"{name}.log"

    def bound_logs(self) -> None:
        """Sets every long log aside as `<name>.log.1`, replacing the previous one.

        The writers keep the same file: they append. Without room for a copy, the lines are lost, so that the log does
        not fill the disk.
        """
        for path in (self.path / "logs").glob("*.log"):
            with suppress(OSError):
                if path.stat().st_size <= LOG_LIMIT_BYTES:
                    continue
                aside = path.with_suffix(".log.1")
                try:
                    set_aside(path, aside)
                except OSError:
                    aside.unlink(missing_ok=True)
                    os.truncate(path, 0)

    def close_to_others(self) -> None:
        """Makes the directory and its files private: modes 0700 and 0600, also for files of earlier runs.

        Only Touchstone's own names: the directory may also hold other files.
        """
        self.path.chmod(0o700)
        for name in _OWN:
            _close(self.path / name)
            for folder, folders, files in os.walk(self.path / name):
                for each in (*folders, *files):
                    _close(Path(folder) / each)

    def service_token(self) -> str:
        """The services' shared secret, created at first use."""
        return self._secret("service-token")

    def nats_token(self) -> str:
        """The password that NATS requires of every connection, created at first use: other accounts of the machine must
        not reach it."""
        return self._secret("nats-token")

    def _secret(self, name: str) -> str:
        # A damaged one is replaced: nothing could use it.
        with suppress(OSError, ValueError):
            if _SECRET.fullmatch(found := (self.path / name).read_text().strip()):
                return found
        secret = self._secrets.setdefault(name, secrets.token_urlsafe(32))
        # Without room to store it, it applies only to this launcher until there is.
        with suppress(OSError):
            self.write_private(name, secret)
        return secret

    def write_private(self, name: str, text: str) -> Path:
        """A file that only its owner may read, written whole or not at all."""
        path, fresh = self.path / name, self.path / f"{name}.new"
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        return fresh.replace(path)

    # -- children --------------------------------------------------------------------------------------------------

    @property
    def _record(self) -> Path:
        return self.path / "children.json"

    def record(self, name: str, pid: int) -> None:
        """Notes a child, so that a later launcher can end it if this one is killed."""
        info = process_info(pid)
        if info is not None:
            self._children[name] = info
            self._save()

    def forget(self, name: str) -> None:
        if self._children.pop(name, None) is not None:
            self._save()

    def _save(self) -> None:
        children = {name: [info.pid, info.started] for name, info in self._children.items()}
        fresh = self._record.with_suffix(".new")
        # The record is the second safety net after the kernel's parent-death signal: a full disk must not stop a
        # restart.
        with suppress(OSError):
            fresh.write_text(json.dumps({"boot": _boot_id(), "children": children}))
            fresh.replace(self._record)

    def reap(self) -> int:
        """Ends what an earlier launcher left running here, whole process groups; returns how many processes.

        A recorded pid may by now belong to another process. So a process must be in a recorded group, not older than
        the record, and have this state directory in its environment.
        """
        try:
            saved = json.loads(self._record.read_text())
            recorded = {int(pid): int(started) for pid, started in saved["children"].values()}
            same_boot = saved["boot"] == _boot_id()
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return 0
        left: list[ProcessInfo] = []
        if same_boot:
            left = [info for info in _all_processes() if self._is_ours(info, recorded)]
        for info in left:
            try:
                os.kill(info.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + REAP_TIMEOUT_S
        for info in left:
            while (now := process_info(info.pid)) and now.started == info.started and not now.zombie:
                if time.monotonic() > deadline:
                    raise LaunchError(f"Process {info.pid} of an earlier run does not stop. Kill it, then start again.")
                time.sleep(0.02)
        self._record.unlink(missing_ok=True)
        return len(left)

    def _is_ours(self, info: ProcessInfo, recorded: dict[int, int]) -> bool:
        if info.zombie or info.group not in recorded or info.started < recorded[info.group]:
            return False
        try:
            environ = Path(f"/proc/{info.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"TOUCHSTONE_STATE_DIR={self.path}".encode() in environ


def _close(path: Path) -> None:
    # Files come and go while an earlier run's NATS ends, and a link may lead anywhere.
    with suppress(OSError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & 0o077:
            path.chmod(stat.S_IMODE(mode) & 0o700)


def _all_processes() -> list[ProcessInfo]:
    infos = (process_info(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [info for info in infos if info is not None]


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
