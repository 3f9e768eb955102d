"""Reading answers out of responses."""
