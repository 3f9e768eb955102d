"""Serving engines as child processes: one model at a time, none left behind."""
