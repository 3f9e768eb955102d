"""Engines for tests: the command of the fake one, and a look at which run now."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from services.evaluator.endpoints.engine_options import EngineOptions

FAKE = Path(__file__).parent / "servers" / "fake_engine.py"


def fake_command(tag: str, *arguments: str) -> list[str]:
    """Starts the fake engine; `tag` stands in its command line, by which `running` finds it."""
    return [sys.executable, "-S", str(FAKE), "--port", "{port}", "--model", "{model}", "--tag", tag, *arguments]


def fake_options(state_dir: Path, *arguments: str, **table: Any) -> EngineOptions:
    """Options of an engine endpoint with models a and b, whose tag is its state directory."""
    whole = {"command": fake_command(str(state_dir), *arguments), "models": ["/srv/a", "/srv/b"], "device": "cpu"}
    return EngineOptions.read(whole | table, {"TOUCHSTONE_STATE_DIR": str(state_dir)})


def running(tag: str, word: str = "") -> dict[int, str]:
    """Command lines, by pid, of processes whose command line holds the tag and the word."""
    found = {}
    for entry in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            line = Path(f"/proc/{int(entry)}/cmdline").read_bytes().decode("utf-8", "replace")
            if tag in line and word in line:
                found[int(entry)] = line
    return found


class Sampler:
    """Looks every 20 ms how many engines of a tag and word there are, while the block runs.

    Engines are counted by command lines, which hold a port: a child has its parent's for a moment.
    """

    def __init__(self, tag: str, word: str) -> None:
        self.counts: list[int] = []
        self._look: Callable[[], dict[int, str]] = lambda: running(tag, word)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.02):
            self.counts.append(len(set(self._look().values())))


def none_left(tag: str, timeout_s: float = 2.0) -> bool:
    """Whether no process of the tag is there any more within the time."""
    deadline = time.monotonic() + timeout_s
    while running(tag):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
