"""Jobs that are created at set times."""
