"""Rows of data sets and where they come from."""
