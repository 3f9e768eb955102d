"""The evaluator: takes units of work, asks models and publishes scored answers."""
