"""What of a request is kept beside its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def recorded(beside: Mapping[str, Any]) -> str:
    """JSON of what a request carried beside model and prompt, in the provider's own names: its fields sorted,
    and within them everything in the order in which it was sent."""
    return json.dumps(dict(sorted(beside.items())), separators=(",", ":"), ensure_ascii=False)
