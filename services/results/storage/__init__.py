"""The DuckDB file: opening and migrating it, rows of items and runs, and how long texts stay."""
