"""`python -m tests.simulator`; `make simulate` calls it."""

import sys

from tests.simulator.runner import main

if __name__ == "__main__":
    sys.exit(main())
