"""Calls through `/v1/chat/completions` and `/v1/responses`, and their sums."""
