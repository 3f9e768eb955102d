"""A job's life, progress, budget and place in the queue. Pure."""
