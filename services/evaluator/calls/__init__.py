"""Calls of models that users make through the gateway: each is made once, in its turn, and metered."""
