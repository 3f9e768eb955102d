"""`/run`, `/results`, `/history` and what is done to one job: cancel, retry, re-score, export, logs."""
