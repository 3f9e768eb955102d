"""Uploaded files as they arrive."""
