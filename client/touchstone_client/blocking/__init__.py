"""The methods of `Client`, which wait for their answers."""

from touchstone_client.blocking.datasets import Datasets
from touchstone_client.blocking.results import Results

__all__ = ["Datasets", "Results"]
