"""From stored items to the metrics of tasks and the scores of suites."""
