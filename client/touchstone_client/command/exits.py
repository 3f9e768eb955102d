"""Exit codes of the command. `gate` has codes of its own, in `gate.exits`."""

DONE = 0
FAILED = 1
"""The job failed, was cancelled or is incomplete."""
REFUSED = 2
"""As argparse's own, for arguments that cannot be."""
UNREACHABLE = 3
"""A service does not answer, or failed."""
INTERRUPTED = 130
PIPE_CLOSED = 141
"""Whoever reads the output has gone."""
