"""The conditions that a job must meet before it is queued. Pure."""
