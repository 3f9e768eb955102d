"""Verbs of what runs by itself: schedules, watches and webhooks, and the digest of what changed."""
