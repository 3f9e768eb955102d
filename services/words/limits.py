"""Limits that several services check. Pure."""

from __future__ import annotations

from typing import Final

MOST_CALL_BYTES: Final = 16 * 1024 * 1024
"""Bytes of the body of a call to `/v1/chat/completions` or `/v1/responses`, most."""
EXPIRY_S: Final = (3600, 30 * 24 * 3600)
"""Seconds from an upload until its dataset is deleted, least and most: those of OpenAI's files."""
