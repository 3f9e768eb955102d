"""`python -m tests.record`; `make record` calls it."""

import sys

from tests.record.runner import main

if __name__ == "__main__":
    sys.exit(main())
