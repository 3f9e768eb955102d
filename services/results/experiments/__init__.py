"""Experiments: their rows, and what their jobs found."""
