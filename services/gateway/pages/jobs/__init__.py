"""Pages of jobs: the history, and one job with its receipt, events and progress."""
