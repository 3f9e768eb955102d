"""What of a request is kept beside its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def recorded(beside: Mapping[str, Any]) -> str:
    """Canonical JSON of what a request carried beside model and prompt, in the provider's own names."""
    return json.dumps(beside, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
