"""What uploads may be at most, as the installation sets it."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.results.datasets.frames import Limits

STORE_BYTES = 20 * 10**9


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """`file` bounds each file; `at_once` uploads are read side by side, a process each; further ones wait for
    `wait_s`. One whose client sends nothing for `idle_s` is given up, and one that takes longer than `whole_s`."""

    file: Limits = field(default_factory=Limits)
    at_once: int = 2
    wait_s: float = 30
    idle_s: float = 60
    whole_s: float = 3600
