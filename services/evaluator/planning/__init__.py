"""Plans of jobs: tasks, items and units, and the most that a job may cost."""
