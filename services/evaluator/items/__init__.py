"""What a task, an item and a request are, with their hashes and metrics."""
