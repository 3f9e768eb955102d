"""When calls go out."""
