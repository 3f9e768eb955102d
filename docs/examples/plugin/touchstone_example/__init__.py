"""A suite, a scorer and a provider kind for Touchstone."""
