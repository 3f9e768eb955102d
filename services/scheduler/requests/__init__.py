"""What callers ask of the scheduler."""
