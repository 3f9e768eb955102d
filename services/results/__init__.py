"""The results service: keeps what jobs measured in DuckDB and answers questions about it."""
