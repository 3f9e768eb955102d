"""Answers that other tools collected: taken in, given to evaluators, and dropped once a run holds them."""
