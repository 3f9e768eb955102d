"""What moves jobs from their start to their end: events, releases, seals, losses and time."""
