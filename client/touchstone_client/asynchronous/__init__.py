"""The methods of `AsyncClient`, which are awaited. Those of `blocking`, one by one; a test holds them together."""

from touchstone_client.asynchronous.datasets import Datasets
from touchstone_client.asynchronous.results import Results

__all__ = ["Datasets", "Results"]
