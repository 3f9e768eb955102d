"""`python -m deploy.local run` starts Touchstone, shows the demo and stays; `demo` ends after its leaderboard;
`serve` starts and stays without the demo."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from deploy.local.launcher import launch
from deploy.local.settings import LaunchError, Settings
from deploy.local.terminal import Terminal


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    parser.add_argument("mode", nargs="?", default="run", choices=("run", "demo", "serve"))
    mode = parser.parse_args().mode
    # For all files that the launcher and its processes write, including NATS' store.
    os.umask(0o077)
    try:
        return asyncio.run(launch(Settings.from_env(), os.environ, Terminal(sys.stdout), mode=mode))
    except LaunchError as error:
        sys.stdout.flush()
        print(f"touchstone: {error}", file=sys.stderr)
        return error.code
    except OSError as error:
        sys.stdout.flush()
        what = (
            f"{error.filename}: {error.strerror}. Move it away if it should not be there." if error.filename else error
        )
        print(f"touchstone: {what}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
