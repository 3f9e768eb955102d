"""Verbs that show what was measured."""
