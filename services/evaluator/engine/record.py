"""The record of one start of an engine: what a later run needs to end what was left. Standard library only.

The keeper writes it and keeps it up to date. A process is known by its pid and start time, or by the start's mark in
its environment: the first misses what was started since the last look, the second what has overwritten its own
environment, as programs that set their title do.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from services.evaluator.engine.process_table import Process, boot_id, descendants, end_all, marked, process

END_S = 10.0


def write(path: Path, mark: str, known: list[Process]) -> None:
    """A record that cannot be written must not stop an engine: the parent-death signal stands before it."""
    fresh = path.with_suffix(".new")
    content = {"boot": boot_id(), "mark": mark, "processes": [[one.pid, one.started] for one in known]}
    with suppress(OSError):
        fresh.write_text(json.dumps(content))
        fresh.replace(path)


def end_left(folder: Path) -> bool:
    """Ends what earlier starts left, by all records in a folder; False when some of it does not end."""
    ended = [_end_recorded(path) for path in sorted(folder.glob("*.json"))]
    return all(ended)


def _end_recorded(path: Path) -> bool:
    """Ends all that a record knows and what that has started; False when some of it does not end."""
    try:
        saved = json.loads(path.read_text())
        mark, known = str(saved["mark"]), {(int(pid), int(started)) for pid, started in saved["processes"]}
    except (OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return True
    ended = True
    if saved.get("boot") == boot_id():

        def ours() -> list[Process]:
            found = {one for pid, _ in known if (one := process(pid)) is not None and (one.pid, one.started) in known}
            found.update(marked(mark))
            found.update(descendants([one.pid for one in found]))
            return list(found)

        ended = end_all(ours, END_S)
    if ended:
        path.unlink(missing_ok=True)
    return ended
