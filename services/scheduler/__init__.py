"""The scheduler: holds jobs and priorities, and sends units of work over NATS."""
