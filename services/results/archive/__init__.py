"""Finished jobs outside the database: immutable Parquet files per job, with a manifest of checksums."""
