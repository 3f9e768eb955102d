"""Reads an uploaded file into checked rows, in a separate process: `python -m services.results.datasets.reading`."""
