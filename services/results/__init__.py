"""The results service: stores what jobs measured in DuckDB and answers questions about it."""
