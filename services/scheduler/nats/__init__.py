"""The scheduler's state and messages in NATS, written by the leader alone."""
