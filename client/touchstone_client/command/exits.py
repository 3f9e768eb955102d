"""Exit codes of the command. `gate` has its own codes, in `gate.exits`."""

DONE = 0
FAILED = 1
"""The job failed, was cancelled or is incomplete."""
REFUSED = 2
"""The same as argparse's, for invalid arguments."""
UNREACHABLE = 3
"""A service does not answer, or failed."""
INTERRUPTED = 130
PIPE_CLOSED = 141
"""The reader of the output has gone."""
