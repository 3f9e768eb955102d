"""What a job must satisfy before it is queued. Pure."""
