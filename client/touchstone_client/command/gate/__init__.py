"""`touchstone gate`: lets a model pass in a CI pipeline when it is shown not to be worse than another."""

from touchstone_client.command.gate.verb import add

__all__ = ["add"]
