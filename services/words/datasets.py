"""Limits of datasets that several services check. Pure."""

from __future__ import annotations

EXPIRY_S = (3600, 30 * 24 * 3600)
"""Seconds from an upload until its dataset is deleted, least and most: those of OpenAI's files."""
