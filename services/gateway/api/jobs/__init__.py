"""`/run`, `/results`, `/history` and actions on one job: cancel, retry, re-score, export, logs."""
