"""Which runs a comparison means, and whether they can be compared."""
