"""What a job comes to: its tasks, items and units, and the most that it may cost."""
