"""Decisions: what the answers to their two jobs say."""
