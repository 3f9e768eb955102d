"""`python -m touchstone_client`, and the command of the client's own distribution."""

from __future__ import annotations

import sys


def main() -> int:
    """Returns the process's exit code."""
    try:
        from touchstone_client.command import main as run
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "rich":
            raise
        print(
            "touchstone: The command needs the packages of the extra cli. Install the wheel as: WHEEL[cli]",
            file=sys.stderr,
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
