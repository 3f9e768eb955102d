"""Answers that other tools collected: stored, given to evaluators, and dropped once a run holds them."""
