"""Reads an uploaded file into checked rows, in a process of its own: `python -m services.results.datasets.reading`."""
