"""Uploaded datasets: read, kept, listed, deleted."""
