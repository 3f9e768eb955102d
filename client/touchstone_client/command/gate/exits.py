"""Exit codes of `touchstone gate`: 0 to 2 are answers, the others say why there is no answer."""

PASSED = 0
"""The items show that the candidate is not worse than the baseline by --max-drop."""
REGRESSION = 1
"""The items show that the candidate is worse, but not that the drop is below --max-drop."""
UNDECIDED = 2
"""These items show neither."""
UNUSABLE = 3
"""A run failed, was cancelled, is incomplete, or the two are not comparable."""
REFUSED = 4
"""The arguments are invalid, or a service refused them."""
UNREACHABLE = 5
"""A service does not answer or failed, or --timeout is over; the job continues."""
