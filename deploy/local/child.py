"""Runs a command that dies with the launcher: `python child.py <launcher's pid> <command> [argument ...]`.

A separate program, not a `preexec_fn`: Python code between fork and exec is unsafe in a process with threads. The
kernel keeps the parent-death signal across exec.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(launcher: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        sys.exit("the launcher has ended")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
