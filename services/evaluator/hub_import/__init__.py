"""Splits of data sets as JSON lines, for the results service to keep as uploaded ones."""
