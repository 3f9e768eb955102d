"""What NATS's failures mean."""

from __future__ import annotations

import nats.errors
import nats.js.errors
import pytest

from services.errors import UnavailableError
from services.scheduler.nats.lease import ends_leadership, silent
from services.scheduler.ports import LeadershipLostError


@pytest.mark.parametrize("error", [nats.errors.TimeoutError(), nats.js.errors.NotFoundError()])
def test_a_failure_ends_the_leadership_or_is_told_to_the_caller(error: Exception) -> None:
    with pytest.raises(LeadershipLostError, match=r"^writing a job: "), ends_leadership("writing a job"):
        raise error
    with pytest.raises(UnavailableError, match="NATS does not answer"), silent():
        raise error


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), ends_leadership("writing a job"), silent():
        raise KeyError
