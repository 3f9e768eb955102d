"""Limits of calls that users make through the gateway."""

from typing import Final

MOST_BODY_BYTES: Final = 16 * 1024 * 1024
