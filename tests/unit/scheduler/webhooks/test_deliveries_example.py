"""The example of the documentation verifies what is really sent."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.scheduler.webhooks import deliveries
from tests.unit.scheduler.webhook_fakes import ended

DOCUMENT = Path(__file__).parents[4] / "docs" / "api.md"


def documented() -> Callable[[str, dict[str, str], bytes], bool]:
    section = DOCUMENT.read_text().split("## Webhooks", 1)[1]
    (code,) = re.findall(r"```python\n(.*?)```", section.split("\n## ", 1)[0], flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    check: Callable[[str, dict[str, str], bytes], bool] = names["is_ours"]
    return check


def test_it_takes_our_calls_and_no_others() -> None:
    is_ours, now = documented(), time.time()
    delivery = deliveries.delivery(ended(), "https://a.example/", "w1")
    body = delivery.body.encode()
    headers = deliveries.headers(delivery, "secret", now)
    assert is_ours("secret", headers, body)
    assert not is_ours("another", headers, body)
    assert not is_ours("secret", headers, body + b" ")
    assert not is_ours("secret", headers | {"Touchstone-Timestamp": str(int(now) + 1)}, body)
    assert not is_ours("secret", deliveries.headers(delivery, "secret", now - 3600), body)
