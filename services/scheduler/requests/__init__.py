"""Callers' requests to the scheduler."""
