"""Decisions through REST: whether one of two models is better, with as few calls as that takes."""
