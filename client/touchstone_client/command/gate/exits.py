"""Exit codes of `touchstone gate`: 0 to 2 are answers, the others say why there is none."""

PASSED = 0
"""Shown: the candidate is not worse than the baseline by as much as --max-drop."""
REGRESSION = 1
"""Shown: the candidate is worse, and that it is less than --max-drop is not."""
UNDECIDED = 2
"""Neither is shown by these items."""
UNUSABLE = 3
"""A run failed, was cancelled, is incomplete, or the two do not compare."""
REFUSED = 4
"""The arguments cannot be, or a service refused them."""
UNREACHABLE = 5
"""A service does not answer or failed, or --timeout is over; the job goes on."""
