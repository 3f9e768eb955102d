"""The methods of `AsyncClient`, which are awaited. Those of `blocking`, one by one; a test holds them together."""

from touchstone_client.asynchronous.installation import Installation
from touchstone_client.asynchronous.jobs import Jobs
from touchstone_client.asynchronous.results import Results

__all__ = ["Installation", "Jobs", "Results"]
