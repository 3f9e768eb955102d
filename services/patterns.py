"""Patterns that users give. RE2 runs them: their time is linear in the text, whatever the pattern (no look-around, no
back-references). Pure.

The services that accept a job check its patterns in the same way as those that run them.
"""

from __future__ import annotations

from typing import Any

MOST_CHARACTERS = 1000
_MOST_MEMORY = 1024 * 1024
"""Bytes of a compiled pattern; the package keeps the last 128."""


def compiled(pattern: str) -> Any:
    """Raises ValueError, with a clause that continues after "the pattern", for an unusable one."""
    if len(pattern) > MOST_CHARACTERS:
        raise ValueError(f"has {len(pattern):,} characters; at most {MOST_CHARACTERS:,} are allowed")
    # Most jobs have none, and need no RE2.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0] if error.args else ""
        told = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise ValueError(f"is not a valid RE2 pattern ({told})") from error
    except UnicodeEncodeError as error:
        raise ValueError("is not valid text") from error
