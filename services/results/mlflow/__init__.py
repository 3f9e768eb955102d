"""Sends what was run, and how it was judged, to an MLflow server."""
