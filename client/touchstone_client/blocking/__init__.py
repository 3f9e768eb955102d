"""The methods of `Client`, which wait for their answers."""

from touchstone_client.blocking.installation import Installation
from touchstone_client.blocking.jobs import Jobs
from touchstone_client.blocking.results import Results

__all__ = ["Installation", "Jobs", "Results"]
