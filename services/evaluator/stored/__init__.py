"""Answers that exist already: stored responses, re-scores and imported answers."""
