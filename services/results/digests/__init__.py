"""Digests: what changed in a time."""
