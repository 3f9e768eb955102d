"""Calls of a stub of an application."""

from __future__ import annotations

from typing import Any

TABLE: dict[str, Any] = {"path": "/ask", "request": {"question": "{prompt}"}, "answer": "$.reply.text"}
