"""Touchstone on one machine: NATS and the services as supervised processes on loopback."""
