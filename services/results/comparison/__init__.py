"""Finished runs compared on the items that they share: differences, tests, rank ranges, advice."""
