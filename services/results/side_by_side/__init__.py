"""Answers of several jobs to the same rows."""
