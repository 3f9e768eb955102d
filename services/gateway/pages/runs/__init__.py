"""Pages that start jobs: the Run page, re-scores and re-runs."""
