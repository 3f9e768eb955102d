"""Watches: which items they ask, and what the answers show."""
