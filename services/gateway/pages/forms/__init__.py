"""Forms as they were sent: their errors, and their job specs."""
