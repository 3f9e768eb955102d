"""Jobs, metrics and items as files: CSV, JSON, JSON Lines and Parquet."""
