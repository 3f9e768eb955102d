"""Exit codes of the command."""

DONE = 0
FAILED = 1
"""The job failed, was cancelled or is incomplete."""
REFUSED = 2
"""As argparse's own, for arguments that cannot be."""
UNREACHABLE = 3
INTERRUPTED = 130
